// SPDX-License-Identifier: Apache-2.0

package csrview

import (
	"bytes"
	"errors"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

// Overrides replace fields of a request. An empty field replaces nothing.
type Overrides struct {
	Signer            string // long or short
	Username          string
	Groups            []string // of that user
	Usages            []string
	ExpirationSeconds *int32
	Approved          bool // by a person
}

var errNoRequest = errors.New("is not a certificate signing request: must be a CertificateSigningRequest in YAML or JSON, or a request in PEM")

// ReadRequest returns the API object that the API server would hold. The data is an object in YAML or JSON, or a bare
// request in PEM. Fields that neither the data nor the overrides have are filled in as for a node that asks for its own
// certificate now. The error says what is wrong with the data: "is not a …".
func ReadRequest(data []byte, o Overrides, now time.Time) (*certificatesv1.CertificateSigningRequest, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("-----BEGIN")) {
		csr.Spec.Request = data
	} else if err := yaml.UnmarshalStrict(data, csr); err != nil || csr.Kind != "CertificateSigningRequest" {
		return nil, errNoRequest
	}
	asked, _ := pki.Parse(csr.Spec.Request) // the policy refuses a request that cannot be read
	if o.Signer != "" {
		csr.Spec.SignerName = LongSigner(o.Signer)
	}
	if csr.Spec.SignerName == "" {
		csr.Spec.SignerName = pki.SignerKubeletClient
		if len(asked.DNSNames())+len(asked.Addresses()) > 0 {
			csr.Spec.SignerName = pki.SignerKubeletServing
		}
	}
	if o.Username != "" {
		csr.Spec.Username, csr.Spec.Groups = o.Username, append(slices.Clone(o.Groups), "system:authenticated")
	}
	if csr.Spec.Username == "" {
		csr.Spec.Username, csr.Spec.Groups = asked.CommonName(), []string{"system:nodes", "system:authenticated"}
	}
	if len(o.Usages) > 0 {
		csr.Spec.Usages = usages(o.Usages)
	}
	if profile, ok := pki.ProfileFor(csr.Spec.SignerName); ok && len(csr.Spec.Usages) == 0 {
		csr.Spec.Usages = usages(profile.Usages)
	}
	if csr.CreationTimestamp.IsZero() {
		csr.CreationTimestamp = metav1.NewTime(now)
	}
	if o.ExpirationSeconds != nil {
		csr.Spec.ExpirationSeconds = o.ExpirationSeconds
	}
	csr.Status = certificatesv1.CertificateSigningRequestStatus{} // it is judged anew
	if o.Approved {
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: policy.ReasonApprovedByOperator,
		}}
	}
	return csr, nil
}

func usages[S ~string](texts []S) []certificatesv1.KeyUsage {
	var out []certificatesv1.KeyUsage
	for _, text := range texts {
		out = append(out, certificatesv1.KeyUsage(text))
	}
	return out
}

// Simulate returns what a policy would decide about a request if the assumptions were the facts.
func Simulate(p policy.Policy, csr *certificatesv1.CertificateSigningRequest, a Assumptions, now time.Time) decision.Decision {
	request := policy.Read(csr, p)
	return policy.Decide(p, request, Suppose(policy.Ask(p, request), a, now), now)
}
