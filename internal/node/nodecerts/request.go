// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/bundle"
)

const (
	userPrefix = "system:node:"
	nodesGroup = "system:nodes"
)

// request is one certificate that is asked for.
type request struct {
	kind     Kind
	template x509.CertificateRequest
	key      *ecdsa.PrivateKey
}

// newRequest asks for what a kubelet would (pkg/kubelet/certificate/kubelet.go): with a new key, the node's own name,
// and on a serving certificate every name and address of its Node.
func newRequest(kind Kind, node *corev1.Node) (request, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return request{}, fmt.Errorf("making a key: %w", err)
	}
	r := request{kind: kind, key: key, template: x509.CertificateRequest{
		Subject: pkix.Name{CommonName: userPrefix + node.Name, Organization: []string{nodesGroup}},
	}}
	if kind == Serving {
		r.template.DNSNames, r.template.IPAddresses = names(node.Status.Addresses)
		if len(r.template.IPAddresses) == 0 { // so is the kubelet's, since 1.31 (AllowDNSOnlyNodeCSR)
			return request{}, fmt.Errorf("node %s has no address yet, so a serving certificate would name none", node.Name)
		}
	}
	return r, nil
}

// names are those of a serving certificate, each once and sorted.
func names(addresses []corev1.NodeAddress) (dns []string, ips []net.IP) {
	for _, a := range addresses {
		ip := net.ParseIP(a.Address)
		switch a.Type {
		case corev1.NodeHostName:
			if ip == nil && a.Address != "" {
				dns = append(dns, a.Address)
			}
		case corev1.NodeInternalDNS, corev1.NodeExternalDNS:
			ip = nil
			if a.Address != "" {
				dns = append(dns, a.Address)
			}
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
		default:
			ip = nil
		}
		if ip != nil {
			ips = append(ips, ip)
		}
	}
	slices.Sort(dns)
	slices.SortFunc(ips, func(a, b net.IP) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(dns), slices.CompactFunc(ips, net.IP.Equal)
}

// object is the request as it is created. Key encipherment is for RSA only.
func (r request) object() (*certificatesv1.CertificateSigningRequest, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &r.template, r.key)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	usage, _ := r.kind.usage()
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: r.kind.SignerName(),
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
		},
	}, nil
}

// check reports whether what was issued is what was asked for. Trusted authorities, if any are known, must have signed
// it.
func (r request) check(issued []byte, trusted []*x509.Certificate, now time.Time) ([]*x509.Certificate, error) {
	chain, err := bundle.Parse(issued)
	if err != nil {
		return nil, err
	}
	leaf := chain[0]
	_, usage := r.kind.usage()
	key, ok := leaf.PublicKey.(*ecdsa.PublicKey)
	switch {
	case !ok || !key.Equal(r.key.Public()):
		return nil, errors.New("it is for another key")
	case leaf.IsCA:
		return nil, errors.New("it is an authority's")
	case leaf.Subject.CommonName != r.template.Subject.CommonName || !slices.Equal(leaf.Subject.Organization, r.template.Subject.Organization):
		return nil, fmt.Errorf("it names %s, not %s", leaf.Subject, r.template.Subject)
	case !same(leaf.DNSNames, r.template.DNSNames) || !same(texts(leaf.IPAddresses), texts(r.template.IPAddresses)):
		return nil, fmt.Errorf("it is for %v %v, not for %v %v", leaf.DNSNames, leaf.IPAddresses, r.template.DNSNames, r.template.IPAddresses)
	case !slices.Contains(leaf.ExtKeyUsage, usage):
		return nil, fmt.Errorf("it is not a %s certificate", r.kind)
	case now.Before(leaf.NotBefore) || !now.Before(leaf.NotAfter):
		return nil, fmt.Errorf("it is valid from %s to %s, and the clock says %s", leaf.NotBefore.Format(time.RFC3339), leaf.NotAfter.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	if len(trusted) == 0 {
		return chain, nil
	}
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	for _, authority := range trusted {
		roots.AddCert(authority)
	}
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
		return nil, fmt.Errorf("no authority that the cluster publishes signed it: %w", err)
	}
	return chain, nil
}

func texts(ips []net.IP) []string {
	out := make([]string, 0, len(ips))
	for _, ip := range ips {
		out = append(out, ip.String())
	}
	return out
}

// same compares sets.
func same(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}
