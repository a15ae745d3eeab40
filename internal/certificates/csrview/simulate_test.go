// SPDX-License-Identifier: Apache-2.0

package csrview

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

func TestReadRequest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	client, serving := pkitest.Kubelet(t, "node-1"), pkitest.Kubelet(t, "node-1", "node-1", "10.0.0.1")
	year := int32(31536000)
	stored, err := ReadRequest(serving, Overrides{Approved: true}, now.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	stored.Kind, stored.APIVersion = "CertificateSigningRequest", "certificates.k8s.io/v1"
	document, err := yaml.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name      string
		data      []byte
		overrides Overrides
		want      string // signer, user, groups, usages, expiration, conditions, time
	}{
		{"a node for its client certificate", client, Overrides{}, "kubernetes.io/kube-apiserver-client-kubelet system:node:node-1 [system:nodes system:authenticated] [digital signature client auth] 0 0 12:00"},
		{"a node for its serving certificate", append([]byte("\n"), serving...), Overrides{}, "kubernetes.io/kubelet-serving system:node:node-1 [system:nodes system:authenticated] [digital signature server auth] 0 0 12:00"},
		{"somebody else", client, Overrides{Username: "anna", Groups: []string{"team"}}, "kubernetes.io/kube-apiserver-client-kubelet anna [team system:authenticated] [digital signature client auth] 0 0 12:00"},
		{"another signer", client, Overrides{Signer: "kubelet-serving"}, "kubernetes.io/kubelet-serving system:node:node-1 [system:nodes system:authenticated] [digital signature server auth] 0 0 12:00"},
		{"other usages, for a year, approved", client, Overrides{Usages: []string{"any"}, ExpirationSeconds: &year, Approved: true}, "kubernetes.io/kube-apiserver-client-kubelet system:node:node-1 [system:nodes system:authenticated] [any] 31536000 1 12:00"},
		{"one that there is, judged anew", document, Overrides{}, "kubernetes.io/kubelet-serving system:node:node-1 [system:nodes system:authenticated] [digital signature server auth] 0 0 11:00"},
	} {
		csr, err := ReadRequest(test.data, test.overrides, now)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		seconds := int32(0)
		if csr.Spec.ExpirationSeconds != nil {
			seconds = *csr.Spec.ExpirationSeconds
		}
		got := fmt.Sprint(csr.Spec.SignerName, " ", csr.Spec.Username, " ", csr.Spec.Groups, " ", csr.Spec.Usages, " ", seconds, " ", len(csr.Status.Conditions), " ", csr.CreationTimestamp.UTC().Format("15:04"))
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
	for _, text := range []string{"", "a: b", "kind: Pod", "{kind: CertificateSigningRequest, nothing: 1}"} {
		if _, err := ReadRequest([]byte(text), Overrides{}, now); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

func TestSimulate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	csr, err := ReadRequest(pkitest.Kubelet(t, "node-1"), Overrides{}, now)
	if err != nil {
		t.Fatal(err)
	}
	machines := []policy.Machine{{ID: "i-1", NodeName: "node-1"}}
	if got := Simulate(policy.Policy{}, csr, Assumptions{Machines: machines, AccessRefused: true}, now); got.Verdict == decision.Approve {
		t.Errorf("approved without a right: %s", got)
	}
}

func TestNamesOfSigners(t *testing.T) {
	t.Parallel()
	for short, long := range map[string]string{
		"kubelet-client":        pki.SignerKubeletClient,
		"kubelet-serving":       pki.SignerKubeletServing,
		"kube-apiserver-client": "kubernetes.io/kube-apiserver-client",
		"example.com/signer":    "example.com/signer",
	} {
		if ShortSigner(long) != short || LongSigner(short) != long || LongSigner(long) != long {
			t.Errorf("%s is %s, %s is %s", long, ShortSigner(long), short, LongSigner(short))
		}
	}
}
