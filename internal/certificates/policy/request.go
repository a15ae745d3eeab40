// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/pki"
)

// Phase is how far a request has come.
type Phase string

// The phases of a request.
const (
	Pending  Phase = "Pending"
	Approved Phase = "Approved" // by anybody; not issued yet
	Denied   Phase = "Denied"
	Failed   Phase = "Failed"
	Issued   Phase = "Issued"
)

// Request is a certificate signing request as the API server holds it: Username, UID, Groups and Extra were written by
// the API server itself and can be believed.
type Request struct {
	SignerName        string
	Username, UID     string
	Groups            []string
	Extra             map[string][]string
	Usages            []string
	ExpirationSeconds *int32
	Phase             Phase
	// ByPerson means that it is approved for a reason that people give: see Policy.ApprovalReasons.
	ByPerson bool

	// Created is when it was made, by the API server's clock.
	Created time.Time

	// CSR is what stands in the request's bytes; ParseError says why it could not be read.
	CSR        pki.Request
	ParseError error
}

// Read makes a Request of an API object. The bytes are parsed only if the policy serves the signer and something is
// left to do.
func Read(o *certificatesv1.CertificateSigningRequest, p Policy) Request {
	r := Request{
		SignerName: o.Spec.SignerName,
		Username:   o.Spec.Username, UID: o.Spec.UID, Groups: slices.Clone(o.Spec.Groups),
		ExpirationSeconds: o.Spec.ExpirationSeconds,
		Phase:             PhaseOf(o),
		ByPerson:          p.byPerson(o),
		Created:           o.CreationTimestamp.Time,
	}
	for _, u := range o.Spec.Usages {
		r.Usages = append(r.Usages, string(u))
	}
	if len(o.Spec.Extra) > 0 {
		r.Extra = make(map[string][]string, len(o.Spec.Extra))
		for k, v := range o.Spec.Extra {
			r.Extra[k] = slices.Clone(v)
		}
	}
	if _, ok := p.Profile(r.SignerName); ok && (r.Phase == Pending || r.Phase == Approved) {
		r.CSR, r.ParseError = pki.Parse(o.Spec.Request)
	}
	return r
}

// PhaseOf returns how far a request has come. As at upstream a condition counts whatever its status says; Failed does
// so here, too (pkg/controller/certificates/certificate_controller_utils.go).
func PhaseOf(o *certificatesv1.CertificateSigningRequest) Phase {
	p := Pending
	for _, c := range o.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateDenied:
			return Denied
		case certificatesv1.CertificateFailed:
			return Failed
		case certificatesv1.CertificateApproved:
			p = Approved
		}
	}
	if len(o.Status.Certificate) > 0 {
		return Issued
	}
	return p
}

// Reasons of approvals: that of upstream's approver and of this one, that of kubectl certificate approve, and that of
// muster csr approve.
const (
	ReasonAutoApproved       = "AutoApproved"
	ReasonKubectl            = "KubectlApprove"
	ReasonApprovedByOperator = "ApprovedByOperator"
)

// byPerson reports whether a person approved. Anybody who may approve may write any reason, but a program that pretends
// to be kubectl does it on purpose; whatever else approves says so, and vouches for nobody.
func (p Policy) byPerson(o *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(o.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved &&
			(c.Reason == ReasonKubectl || c.Reason == ReasonApprovedByOperator || c.Reason != ReasonAutoApproved && slices.Contains(p.ApprovalReasons, c.Reason))
	})
}
