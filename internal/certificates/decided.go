// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/review"
	"muster.dev/muster/internal/token"
	"muster.dev/muster/internal/trace"
)

// MachineOf returns the machine that a request was approved for: the one that an approver or signer wrote down, or the one that the
// requester's bootstrap token was made for. It is for a register to ask about what somebody else issued. Nodes create requests
// with any annotations they like; the API server notes who wrote which, and nobody chooses his groups.
func MachineOf(csr *certificatesv1.CertificateSigningRequest) string {
	if review.Vouched(csr, review.MachineAnnotation) {
		return csr.Annotations[review.MachineAnnotation]
	}
	machine := ""
	for _, g := range csr.Spec.Groups {
		s, ok, err := token.ParseGroup(g)
		switch {
		case !ok:
		case err != nil, machine != "", s.Kind != token.ScopeMachine:
			return ""
		default:
			machine = s.Value
		}
	}
	return machine
}

// disown takes annotations of ours away that nobody vouches for, before anything is written with them.
func disown(csr *certificatesv1.CertificateSigningRequest) {
	for _, a := range []string{review.Annotation, review.MachineAnnotation} {
		if _, ok := csr.Annotations[a]; ok && !review.Vouched(csr, a) {
			delete(csr.Annotations, a)
		}
	}
}

// longest detail of a check that is written down. A request may ask for a thousand names.
const longestDetail = 400

func compact(d trace.Decision) string { return review.Encode(d, longestDetail) }
