// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/render"
)

// Where a kubelet keeps its certificates and keys.
const (
	clientCertificate  = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	servingCertificate = "/var/lib/kubelet/pki/kubelet-server-current.pem"
	// pendingKey is that of the first certificate while there is none yet (pkg/kubelet/certificate/bootstrap).
	pendingKey = "/var/lib/kubelet/pki/kubelet-client.key.tmp"
	authority  = "/etc/kubernetes/pki/ca.crt"
)

// answerTime is how long the API server may take over one request.
const answerTime = 15 * time.Second

// Connect makes a client.
func Connect(config *rest.Config) (kubernetes.Interface, error) {
	config.QPS = -1 // few requests need no limit
	return kubernetes.NewForConfig(config)
}

// byToken is the client configuration of the holder of a bootstrap token.
func byToken(endpoint string, ca []byte, t token.Token) *rest.Config {
	return &rest.Config{Host: endpoint, BearerToken: t.Reveal(), TLSClientConfig: rest.TLSClientConfig{CAData: ca}, UserAgent: "muster-join"}
}

// byNode is the node's own way in, or an error if it has none.
func (d disk) byNode(endpoint string) (*rest.Config, error) {
	ca, err := os.ReadFile(d.at(authority))
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's authority: %w", err)
	}
	pair, err := os.ReadFile(d.at(clientCertificate))
	if err != nil {
		return nil, fmt.Errorf("reading the node's certificate: %w", err)
	}
	return &rest.Config{Host: endpoint, TLSClientConfig: rest.TLSClientConfig{CAData: ca, CertData: pair, KeyData: pair}, UserAgent: "muster-join"}, nil
}

// trusts reports whether any of these authorities is one that the node trusts by now: they may have been replaced, one
// after the other, since the join that the ledger tells of (nodecerts.RefreshAuthorities).
func (d disk) trusts(pins []string) bool {
	bundle, err := os.ReadFile(d.at(authority))
	if err != nil {
		return false
	}
	present, err := PinsOf(bundle)
	return err == nil && slices.ContainsFunc(pins, func(pin string) bool { return slices.Contains(present, pin) })
}

// certificateIn reads the first certificate of a file, and checks that its key is there, too.
func (d disk) certificateIn(path string) (*x509.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(d.at(path), d.at(path))
	if err != nil {
		return nil, err
	}
	return pair.Leaf, nil
}

// joined reports whether the kubelet has a certificate that is good for some time yet, so that it needs no token.
func (d disk) joined(nodeName string, now time.Time) bool {
	if _, err := os.Lstat(d.at(render.PathKubeconfig)); err != nil {
		return false
	}
	return d.holds(clientCertificate, nodeName, now)
}

// holds reports whether a file has a good certificate of the node's.
func (d disk) holds(path, nodeName string, now time.Time) bool {
	certificate, err := d.certificateIn(path)
	return err == nil && certificate.Subject.CommonName == "system:node:"+nodeName && now.Before(certificate.NotAfter)
}

// hostOf is the address and port of a URL.
func hostOf(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%q is not the URL of an API server", endpoint)
	}
	if u.Port() == "" {
		return u.Host + ":443", nil
	}
	return u.Host, nil
}
