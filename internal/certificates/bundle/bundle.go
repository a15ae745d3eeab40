// SPDX-License-Identifier: Apache-2.0

// Package bundle renders certificate authorities for the verifiers of certificates that they signed: as PEM, and as the
// ConfigMaps in which the authorities of kubelets' certificates are published. Values in, values out.
package bundle

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The ConfigMaps, and the key that the PEM is under: the one that upstream's kube-root-ca.crt has.
const (
	Client  = "muster-kubelet-client-ca"
	Serving = "muster-kubelet-serving-ca"
	Key     = "ca.crt"
)

// descriptions tell finders of a ConfigMap its purpose.
var descriptions = map[string]string{
	Client:  "Authorities of kubelets' client certificates: trust all of them to verify who a kubelet is.",
	Serving: "Authorities of kubelets' serving certificates: trust all of them to verify a kubelet that is called, as for its metrics.",
}

// annotationDescription is upstream's annotation for people.
const annotationDescription = "kubernetes.io/description"

// PEM is all of the authorities, each once, in an order that does not depend on how they were given: a program that
// compares bundles must not see a change where there is none.
func PEM(authorities ...*x509.Certificate) []byte {
	sorted := slices.Clone(authorities)
	slices.SortFunc(sorted, func(a, b *x509.Certificate) int {
		return cmp.Or(cmp.Compare(a.Subject.String(), b.Subject.String()), bytes.Compare(a.Raw, b.Raw))
	})
	sorted = slices.CompactFunc(sorted, (*x509.Certificate).Equal)
	var out bytes.Buffer
	for _, authority := range sorted {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw}) // a buffer takes everything
	}
	return out.Bytes()
}

// Parse reads a bundle. A bundle without a certificate is an error: a client with such a bundle would trust nobody.
func Parse(raw []byte) ([]*x509.Certificate, error) {
	var authorities []*x509.Certificate
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("reading certificate %d of the bundle: %w", len(authorities)+1, err)
		}
		authorities = append(authorities, authority)
	}
	if len(authorities) == 0 {
		return nil, errors.New("the bundle has no certificate in PEM")
	}
	return authorities, nil
}

// ConfigMap publishes a bundle; name is [Client] or [Serving].
func ConfigMap(namespace, name string, authorities ...*x509.Certificate) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Annotations: map[string]string{annotationDescription: descriptions[name]},
		},
		Data: map[string]string{Key: string(PEM(authorities...))},
	}
}
