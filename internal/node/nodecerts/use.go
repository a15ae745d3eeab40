// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// accepted shows a new client certificate to the API server before the kubelet has to live with it.
func accepted(ctx context.Context, config *rest.Config, pair []byte, user string) error {
	as := rest.CopyConfig(config)
	as.CertData, as.KeyData = pair, pair
	client, err := kubernetes.NewForConfig(as)
	if err != nil {
		return fmt.Errorf("using the new certificate: %w", err)
	}
	who, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("the API server does not accept the new certificate: %w", err)
	}
	if who.Status.UserInfo.Username != user {
		return fmt.Errorf("with the new certificate the API server takes us for %q, not for %q", who.Status.UserInfo.Username, user)
	}
	return nil
}

// startTime is how long a kubelet may take to serve again.
const startTime = 30 * time.Second

// uses waits until the kubelet serves again, and with the new certificate if that is one of those replaced.
func (c RotateConfig) uses(ctx context.Context, node *corev1.Node, rotated []Rotated) error {
	_, ips := names(node.Status.Addresses)
	port := node.Status.DaemonEndpoints.KubeletEndpoint.Port
	if len(ips) == 0 || port == 0 {
		return nil // it has never served anything
	}
	address := net.JoinHostPort(ips[0].String(), strconv.Itoa(int(port)))
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	// Its owner is what is looked at: the certificate is compared with the one that we know.
	dialer := &tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}} //nolint:gosec // G402: see above
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var last error
	for {
		if last = serves(ctx, dialer, address, rotated); last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the new certificates are in place, but the kubelet does not use them: %w; see its log", last)
		case <-ticker.C:
		}
	}
}

func serves(ctx context.Context, dialer *tls.Dialer, address string, rotated []Rotated) error {
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	secure, ok := connection.(*tls.Conn)
	if !ok || len(secure.ConnectionState().PeerCertificates) == 0 {
		return errors.New("it shows no certificate")
	}
	for _, r := range rotated {
		if r.Kind == Serving && !secure.ConnectionState().PeerCertificates[0].Equal(r.leaf) {
			return errors.New("it serves another certificate")
		}
	}
	return nil
}
