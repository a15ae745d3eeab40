// SPDX-License-Identifier: Apache-2.0

package csrview

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

// State is how far a request has come, in the words of kubectl.
type State = policy.Phase

// The states of a request.
const (
	Pending  = policy.Pending
	Approved = policy.Approved
	Denied   = policy.Denied
	Failed   = policy.Failed
	Issued   = policy.Issued
)

// The sources of a verdict and its reason.
const (
	FromRecord    = "decision record" // of the certificate controller, which only approvers and signers of the signer can write
	FromEvent     = "event"           // which nodes can write, too
	FromCondition = "condition"       // of the request itself, by its approver or denier
)

// Review is what is known about one request.
type Review struct {
	Name       string    `json:"name"`
	Created    time.Time `json:"created"`
	SignerName string    `json:"signerName"`
	Requester  Requester `json:"requester"`
	Asked      Asked     `json:"asked"`

	State State `json:"state"`
	// Verdict of what Source names; empty if no decision is known.
	Verdict decision.Verdict `json:"verdict,omitempty"`
	Rule    decision.RuleID  `json:"rule,omitempty"`
	// Why, in a sentence, and the Source of it.
	Why    string `json:"why,omitempty"`
	Source string `json:"source,omitempty"`
	// Decision with every rule that ran, if the controller recorded it.
	Decision    *decision.Decision `json:"decision,omitempty"`
	Certificate *Certificate       `json:"certificate,omitempty"`
}

// Requester is the requesting user, as the API server wrote it down.
type Requester struct {
	Username string   `json:"username"`
	Groups   []string `json:"groups,omitempty"`
}

// Asked is what stands in the request.
type Asked struct {
	CommonName   string   `json:"commonName,omitempty"`
	Organization []string `json:"organization,omitempty"`
	DNSNames     []string `json:"dnsNames,omitempty"`
	Addresses    []string `json:"addresses,omitempty"`
	Key          string   `json:"key,omitempty"`
	Usages       []string `json:"usages,omitempty"`
	// Duration asked for, in seconds.
	ExpirationSeconds *int32 `json:"expirationSeconds,omitempty"`
	// Unreadable says why the request's bytes cannot be read.
	Unreadable string `json:"unreadable,omitempty"`
}

// Certificate that was issued.
type Certificate struct {
	Serial    string    `json:"serial"`
	Issuer    string    `json:"issuer"`
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
}

// Of reviews a request. Events are those about it, in any order; those about others are left aside.
func Of(csr *certificatesv1.CertificateSigningRequest, events []corev1.Event) Review {
	r := Review{
		Name: csr.Name, Created: csr.CreationTimestamp.UTC(), SignerName: csr.Spec.SignerName,
		Requester: Requester{csr.Spec.Username, csr.Spec.Groups},
		Asked:     asked(csr), State: policy.PhaseOf(csr), Certificate: certificate(csr.Status.Certificate),
	}
	if d, _, ok := Decided(csr); ok {
		r.tell(d, FromRecord)
	}
	switch c := lastCondition(csr); {
	case r.Source != "" && (c == nil || r.explains(c)):
	case c != nil:
		r.Verdict, r.Rule, r.Decision = verdict(c), "", nil // somebody else had the last word
		r.Why, r.Source = sentence(c), FromCondition
	default:
		if e := latest(csr, events); e != nil {
			if d, ok := Decode(e.Annotations[Annotation]); ok {
				r.tell(d, FromEvent)
			} else {
				r.Why, r.Source = e.Message, FromEvent
			}
		}
	}
	return r
}

func (r *Review) tell(d decision.Decision, source string) {
	r.Verdict, r.Rule, r.Decision, r.Source = d.Verdict, d.Rule, &d, source
	if c, ok := d.Deciding(); ok {
		r.Why = c.Sentence()
	} else {
		r.Why = d.Summary()
	}
}

// explains reports whether the recorded decision is the reason of a condition.
func (r *Review) explains(c *certificatesv1.CertificateSigningRequestCondition) bool {
	switch c.Type {
	case certificatesv1.CertificateApproved:
		return r.Verdict == decision.Approve
	case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
		return r.Verdict == decision.Deny
	default:
		return false
	}
}

// verdict of a person or another controller, which has left only a condition.
func verdict(c *certificatesv1.CertificateSigningRequestCondition) decision.Verdict {
	if c.Type == certificatesv1.CertificateApproved {
		return decision.Approve
	}
	return decision.Deny
}

func asked(csr *certificatesv1.CertificateSigningRequest) Asked {
	a := Asked{ExpirationSeconds: csr.Spec.ExpirationSeconds}
	for _, u := range csr.Spec.Usages {
		a.Usages = append(a.Usages, string(u))
	}
	request, err := pki.Parse(csr.Spec.Request)
	if err != nil {
		a.Unreadable = err.Error()
		return a
	}
	a.CommonName, a.Organization, a.DNSNames, a.Key = request.CommonName(), request.Organization(), request.DNSNames(), request.Key().String()
	for _, ip := range request.Addresses() {
		a.Addresses = append(a.Addresses, ip.String())
	}
	return a
}

// lastCondition is the one that says most: failed, then denied, then approved.
func lastCondition(csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequestCondition {
	for _, kind := range []certificatesv1.RequestConditionType{
		certificatesv1.CertificateFailed, certificatesv1.CertificateDenied, certificatesv1.CertificateApproved,
	} {
		for i := range csr.Status.Conditions {
			if csr.Status.Conditions[i].Type == kind {
				return &csr.Status.Conditions[i]
			}
		}
	}
	return nil
}

func sentence(c *certificatesv1.CertificateSigningRequestCondition) string {
	switch {
	case c.Reason == "":
		return c.Message
	case c.Message == "":
		return c.Reason
	default:
		return c.Reason + ": " + c.Message
	}
}

func certificate(data []byte) *Certificate {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return &Certificate{Serial: c.SerialNumber.Text(16), Issuer: c.Issuer.String(), NotBefore: c.NotBefore, NotAfter: c.NotAfter}
}
