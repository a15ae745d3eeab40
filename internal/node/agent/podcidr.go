// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/platform/atomicfile"
)

const podCIDRInterval = 30 * time.Second

// watchPodCIDR keeps the network configuration true to the Node's range of pod addresses. Containerd writes it once,
// from its template, and then never again: a Node that was deleted and has come back with another range would give its
// pods addresses that lead to another machine. A machine that was given a range when it was launched has that for good.
func (a *agent) watchPodCIDR(ctx context.Context) {
	if a.self().PodRange.IsValid() { // whatever the Node says
		return
	}
	for {
		if err := a.checkPodCIDR(ctx, a.current()); err != nil && ctx.Err() == nil {
			a.log.Warn("cannot check the range of pods' addresses", "error", err)
		}
		if !sleep(ctx, podCIDRInterval) {
			return
		}
	}
}

// checkPodCIDR compares the network configuration with the Node, and writes it anew if they differ.
func (a *agent) checkPodCIDR(ctx context.Context, config nodeconfig.Spec) error {
	current, err := os.ReadFile(render.PathCNIConfig)
	if os.IsNotExist(err) { // containerd has not written it yet
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading network configuration: %w", err)
	}
	podCIDR, err := a.podCIDR(ctx, config)
	if err != nil || !podCIDR.IsValid() {
		return err
	}
	want, err := render.CNIConfig(podCIDR)
	if err != nil || bytes.Equal(current, want) {
		return err
	}
	a.log.Warn("the node has another range of pods' addresses than before; new pods get addresses from it", "pod_cidr", podCIDR.String())
	return atomicfile.Write(render.PathCNIConfig, want, 0o644)
}

// trusted are the authorities that the machine trusts now, by their file: since it was told its authorities, it may
// have taken over others (nodecerts.RefreshAuthorities).
func trusted(file string, config nodeconfig.Spec) []byte {
	if authorities, err := os.ReadFile(file); err == nil {
		return authorities
	}
	return config.Cluster.CertificateAuthority
}

// clientCertificate is where the kubelet keeps its certificate and key.
const clientCertificate = "/var/lib/kubelet/pki/kubelet-client-current.pem"

// podCIDR asks the API server for the Node's range of pod addresses, as the node itself.
func (a *agent) podCIDR(ctx context.Context, config nodeconfig.Spec) (netip.Prefix, error) {
	certificates, bearer, err := nodeCredential(ctx, config.Cluster.Name, a.self().Region)
	if err != nil {
		return netip.Prefix{}, err
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(trusted(render.PathCA, config))
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: authorities, Certificates: certificates, MinVersion: tls.VersionTLS12},
	}
	address := strings.TrimSuffix(config.Cluster.APIServerEndpoint, "/") + "/api/v1/nodes/" + render.NodeName(config, a.self())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("asking for the node: %w", err)
	}
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("asking for the node: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound: // not registered yet
		return netip.Prefix{}, nil
	default:
		return netip.Prefix{}, fmt.Errorf("asking for the node: %s", response.Status)
	}
	var node struct {
		Spec struct {
			PodCIDR string `json:"podCIDR"`
		} `json:"spec"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, 4<<20)).Decode(&node); err != nil {
		return netip.Prefix{}, fmt.Errorf("reading the node: %w", err)
	}
	if node.Spec.PodCIDR == "" { // not assigned yet
		return netip.Prefix{}, nil
	}
	podCIDR, err := netip.ParsePrefix(node.Spec.PodCIDR)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("reading the node's range of pods' addresses: %w", err)
	}
	return podCIDR, nil
}
