// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/certificates/bundle"
	"muster.dev/muster/internal/platform/atomicfile"
)

// Bounds of what a cluster publishes about itself.
const (
	maxClusterInfo = 1 << 20
	maxAuthorities = 16
)

// clusterInfo is where a cluster publishes its authorities, to anybody.
const clusterInfo = "/api/v1/namespaces/kube-public/configmaps/cluster-info"

// RefreshAuthorities brings the file of authorities that a node trusts to be the API server up to what the cluster
// publishes, along a chain of trust: the answer must come over a connection that the present authorities verify, the
// published ones must verify that same connection, or the node would lock itself out, and a present one must vouch for
// each that is new: the kubelet takes all of them for those of its clients, too, and the right to write a ConfigMap in
// kube-public is not the right to do everything on every node. It reports whether the file was changed. A cluster that
// publishes nothing is left alone, and so is a kubeconfig that does not name the file.
func RefreshAuthorities(ctx context.Context, kubeconfig, file string, now time.Time) (changed bool, err error) {
	named, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return false, fmt.Errorf("reading the kubelet's kubeconfig: %w", err)
	}
	config, err := Endpoint(kubeconfig)
	if err != nil {
		return false, err
	}
	if c := named.Contexts[named.CurrentContext]; c == nil || named.Clusters[c.Cluster] == nil || named.Clusters[c.Cluster].CertificateAuthority != file {
		return false, nil
	}
	present, err := bundle.Parse(config.CAData)
	if err != nil {
		return false, fmt.Errorf("%s: %w", file, err)
	}
	published, connection, err := askClusterInfo(ctx, config, pool(present))
	if err != nil || connection == nil {
		return false, err
	}
	authorities, err := checkAuthorities(published, present, connection, now)
	if err != nil {
		return false, fmt.Errorf("the authorities that the cluster publishes in kube-public/cluster-info are not taken over: %w", err)
	}
	fresh := bundle.PEM(authorities...)
	if bytes.Equal(fresh, bundle.PEM(present...)) {
		return false, nil
	}
	return true, atomicfile.Write(file, fresh, 0o644)
}

func pool(authorities []*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, a := range authorities {
		p.AddCert(a)
	}
	return p
}

// proxyOf is the way to the API server: that of the kubeconfig, or else of the environment, as join and the kubelet go.
func proxyOf(config *rest.Config) func(*http.Request) (*url.URL, error) {
	if config.Proxy != nil {
		return config.Proxy
	}
	return http.ProxyFromEnvironment
}

// askClusterInfo asks without a credential: cluster-info is for clients that have none, and by upstream's role for them
// alone.
func askClusterInfo(ctx context.Context, config *rest.Config, trusted *x509.CertPool) ([]byte, *tls.ConnectionState, error) {
	client := http.Client{Timeout: config.Timeout, Transport: &http.Transport{
		Proxy: proxyOf(config), DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: config.ServerName, MinVersion: tls.VersionTLS12},
	}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, nil, errors.New("the kubeconfig's server is no URL")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.JoinPath(clusterInfo).String(), http.NoBody) //nolint:gosec // G704: the server of the node's own kubeconfig
	if err != nil {
		return nil, nil, fmt.Errorf("asking for cluster-info: %w", err)
	}
	answer, err := client.Do(request) //nolint:gosec // G704: as above
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return nil, nil, fmt.Errorf("the API server at %s cannot be verified with the authorities that the node has: %w", config.Host, err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer func() { _ = answer.Body.Close() }()
	switch {
	case answer.StatusCode == http.StatusNotFound, answer.StatusCode == http.StatusForbidden, answer.StatusCode == http.StatusUnauthorized:
		return nil, nil, nil
	case answer.StatusCode != http.StatusOK || answer.TLS == nil:
		return nil, nil, fmt.Errorf("asking for cluster-info: %s", answer.Status)
	}
	var object corev1.ConfigMap
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxClusterInfo)).Decode(&object); err != nil {
		return nil, nil, fmt.Errorf("reading cluster-info: %w", err)
	}
	info, err := clientcmd.Load([]byte(object.Data["kubeconfig"]))
	if err != nil {
		return nil, nil, fmt.Errorf("reading cluster-info: %w", err)
	}
	if len(info.Clusters) != 1 {
		return nil, nil, fmt.Errorf("cluster-info names %d clusters, not one", len(info.Clusters))
	}
	for _, cluster := range info.Clusters {
		return cluster.CertificateAuthorityData, answer.TLS, nil
	}
	return nil, nil, nil
}

// checkAuthorities reads published authorities. Together they must verify the connection that they came over.
func checkAuthorities(raw []byte, present []*x509.Certificate, connection *tls.ConnectionState, now time.Time) ([]*x509.Certificate, error) {
	authorities, err := bundle.Parse(raw)
	if err != nil {
		return nil, err
	}
	if len(authorities) > maxAuthorities {
		return nil, fmt.Errorf("there are %d of them, more than %d", len(authorities), maxAuthorities)
	}
	for _, a := range authorities {
		if !a.IsCA {
			return nil, fmt.Errorf("%s is not a certificate authority", a.Subject)
		}
	}
	intermediates := x509.NewCertPool()
	for _, c := range connection.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	if _, err := connection.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: pool(authorities), Intermediates: intermediates, CurrentTime: now, DNSName: connection.ServerName,
	}); err != nil {
		return nil, fmt.Errorf("they do not verify the API server itself: %w", err)
	}
	if a := stranger(authorities, present); a != nil {
		return nil, fmt.Errorf("nobody vouches for %s, which is new: have the present authority sign it as well (a cross-certificate) and publish that, or put it into the file by hand on every node", a.Subject)
	}
	return authorities, nil
}

// stranger returns a new authority that no present authority vouches for, or nil. A present authority vouches for
// authorities that it signed, for those with the same key (itself, renewed), and, transitively, for theirs.
func stranger(authorities, present []*x509.Certificate) *x509.Certificate {
	known, left := slices.Clone(present), slices.Clone(authorities)
	for len(left) > 0 {
		n := slices.IndexFunc(left, func(a *x509.Certificate) bool {
			return slices.ContainsFunc(known, func(k *x509.Certificate) bool {
				return bytes.Equal(a.RawSubjectPublicKeyInfo, k.RawSubjectPublicKeyInfo) || a.CheckSignatureFrom(k) == nil
			})
		})
		if n < 0 {
			return left[0]
		}
		known, left = append(known, left[n]), slices.Delete(left, n, n+1)
	}
	return nil
}

// ErrUnreachable is an API server that does not answer.
var ErrUnreachable = errors.New("the API server does not answer")

// ErrRefused is a bootstrap token that the API server does not take.
var ErrRefused = errors.New("the API server does not accept its token: it has expired or was deleted")

// TryBootstrap reports whether the API server takes the token of a bootstrap kubeconfig, and for a member of which
// groups.
func TryBootstrap(ctx context.Context, path string) (groups []string, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	config.Timeout, config.UserAgent = 10*time.Second, "muster-node"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	who, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err):
		return nil, ErrRefused
	case err != nil:
		return nil, fmt.Errorf("trying the bootstrap token: %w", err)
	case strings.HasPrefix(who.Status.UserInfo.Username, "system:anonymous"):
		return nil, ErrRefused
	}
	return who.Status.UserInfo.Groups, nil
}
