// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"strconv"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/test/plane"
)

const (
	signerClient  = certificatesv1.KubeAPIServerClientKubeletSignerName
	signerServing = certificatesv1.KubeletServingSignerName
)

// machine is one of the fleet, with the requests that its kubelet will make, made beforehand.
type machine struct {
	id, node        string
	address         net.IP
	client, serving []byte // in PEM
}

type fleet struct{ machines []machine }

func newFleet(n int) (*fleet, error) {
	f := &fleet{machines: make([]machine, n)}
	for i := range f.machines {
		m := machine{
			id: fmt.Sprintf("i-%017x", i+1), node: fmt.Sprintf("node-%05d.bench.internal", i),
			address: net.IPv4(10, 128+byte(i>>16), byte(i>>8), byte(i)).To4(),
		}
		var err error
		if m.client, err = newRequest(m.node, nil, nil); err != nil {
			return nil, err
		}
		if m.serving, err = newRequest(m.node, []string{m.node}, []net.IP{m.address}); err != nil {
			return nil, err
		}
		f.machines[i] = m
	}
	return f, nil
}

// newRequest makes a key and a request as kubelets do.
func newRequest(node string, names []string, addresses []net.IP) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a kubelet's key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:" + node, Organization: []string{plane.GroupNodes}},
		DNSNames: names, IPAddresses: addresses,
	}, key)
	if err != nil {
		return nil, fmt.Errorf("making a kubelet's request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// request is what somebody is about to create.
type request struct {
	csr    *certificatesv1.CertificateSigningRequest
	user   string
	groups []string
}

// requests are those of a load, of the machines from the given one on.
func (f *fleet) requests(l load, from int) ([]request, error) {
	all := make([]request, l.size)
	for i := range all {
		m := f.machines[from+i]
		var err error
		switch {
		case l.kind == "single": // one token, good for all machines
			all[i], err = m.bootstrap("single", token.Scope{Kind: token.ScopePattern, Value: "node-*.bench.internal"})
		case l.kind == "mixed" && i%2 == 1:
			all[i] = m.serve()
		default: // a token for each machine; its ID has six characters
			all[i], err = m.bootstrap(fmt.Sprintf("%06s", strconv.FormatInt(int64(from+i), 36)), token.Scope{Kind: token.ScopeMachine, Value: m.id})
		}
		if err != nil {
			return nil, err
		}
		all[i].csr.Name = fmt.Sprintf("csr-%05d", from+i)
	}
	return all, nil
}

func (m machine) bootstrap(id string, scope token.Scope) (request, error) {
	group, err := scope.Group()
	return request{
		csr:    object(signerClient, m.client, certificatesv1.UsageClientAuth),
		user:   "system:bootstrap:" + id,
		groups: []string{plane.GroupBootstrappers, plane.GroupKubeadmTokens, group},
	}, err
}

func (m machine) serve() request {
	return request{
		csr:    object(signerServing, m.serving, certificatesv1.UsageServerAuth),
		user:   "system:node:" + m.node,
		groups: []string{plane.GroupNodes},
	}
}

func object(signer string, raw []byte, usage certificatesv1.KeyUsage) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: signer, Request: raw, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
		},
	}
}
