// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

// A kubelet asks for a serving certificate with its own name, and with an address that the inventory gives to another machine.
func ExampleDecide() {
	const node = "worker-1"
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		fmt.Println(err)
		return
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
		DNSNames:    []string{node},
		IPAddresses: []net.IP{net.ParseIP("192.0.2.12")},
	}, key)
	if err != nil {
		fmt.Println(err)
		return
	}
	object := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: pki.SignerKubeletServing,
		Username:   "system:node:" + node,
		Groups:     []string{"system:nodes", "system:authenticated"},
		Usages:     []certificatesv1.KeyUsage{"digital signature", "server auth"},
		Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
	}}

	own := policy.Machine{ID: "machine-1", NodeName: node, Names: []string{node}, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.11")}}
	facts := policy.Facts{
		NodeMachine: policy.Know(own, "inventory", at),
		Owners: map[string]policy.Fact[[]string]{
			node:         policy.Know([]string{"machine-1"}, "inventory", at),
			"192.0.2.12": policy.Know([]string{"machine-2"}, "inventory", at),
		},
		LastMachine: policy.None[policy.MachineRef]("record", at),
		KeyOwner:    policy.None[string]("record", at),
	}

	p := policy.Policy{}
	decision := policy.Decide(p, policy.Read(object, p), facts, at)
	check, _ := decision.Deciding()
	fmt.Println(decision.Verdict, "by rule", decision.Rule)
	fmt.Println(check.Detail)
	// Output:
	// Deny by rule address-assigned
	// the address 192.0.2.12 is not assigned to machine machine-1 but to machine machine-2
}
