// SPDX-License-Identifier: Apache-2.0

package bootstraptoken

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/discovery"
)

// Door is where machines come in, as cluster-info says it: they will find the same there themselves.
type Door struct {
	Address string // HOST:PORT
	Pins    []string
}

// ReadDoor reads cluster-info over a connection that is trusted already.
func ReadDoor(ctx context.Context, c client.Reader) (Door, error) {
	var info corev1.ConfigMap
	err := c.Get(ctx, client.ObjectKey{Namespace: "kube-public", Name: "cluster-info"}, &info)
	if apierrors.IsNotFound(err) {
		return Door{}, errors.New("the cluster has no ConfigMap kube-public/cluster-info, so nobody can find it by a token; clusters of muster and of kubeadm have one")
	}
	if err != nil {
		return Door{}, err
	}
	cluster, err := discovery.ReadClusterInfo(info.Data["kubeconfig"])
	if err != nil {
		return Door{}, fmt.Errorf("the ConfigMap kube-public/cluster-info is not usable: %w", err)
	}
	pins, err := discovery.Pins(cluster.CA)
	if err != nil {
		return Door{}, fmt.Errorf("the ConfigMap kube-public/cluster-info is not usable: %w", err)
	}
	server, err := url.Parse(cluster.Server)
	if err != nil {
		return Door{}, fmt.Errorf("the ConfigMap kube-public/cluster-info names no server: %w", err)
	}
	address := server.Host
	if server.Port() == "" {
		address += ":443"
	}
	return Door{Address: address, Pins: pins}, nil
}

// Tool is a program that joins a machine to a cluster.
type Tool string

// The programs.
const (
	Muster  Tool = "muster"
	Kubeadm Tool = "kubeadm"
)

// Command is what to run on the machine. The token is in it, whole.
func (d Door) Command(tool Tool, l Listed, now time.Time) (string, error) {
	var flag string
	switch tool {
	case Muster:
		flag = "--ca-cert-hash"
	case Kubeadm:
		flag = "--discovery-token-ca-cert-hash"
	default:
		return "", fmt.Errorf("no program %q joins machines; there are %s and %s", tool, Muster, Kubeadm)
	}
	for _, usage := range []string{token.UsageSigning, token.UsageAuthentication} {
		if !l.May(usage) {
			return "", fmt.Errorf("nobody can join with the token %s: %s is not among its usages", l.Token.ID, usage)
		}
	}
	if l.Expired(now) {
		return "", fmt.Errorf("nobody can join with the token %s any more: it expired at %s", l.Token.ID, l.Expires.UTC().Format(time.RFC3339))
	}
	words := []string{string(tool), "join", d.Address, "--token", l.Token.Reveal()}
	for _, pin := range d.Pins {
		words = append(words, flag, pin)
	}
	for _, s := range l.Scopes {
		if s.Kind == token.ScopeName {
			words = append(words, "--node-name", s.Value)
		}
	}
	return strings.Join(words, " "), nil
}
