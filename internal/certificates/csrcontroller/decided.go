// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/platform/decision"
)

// MachineOf returns the machine that a request was approved or signed for, as stands in it, or the one that the
// requester's bootstrap token was made for. It is for a register to ask about what was issued: no requester of a
// certificate can write either.
func MachineOf(csr *certificatesv1.CertificateSigningRequest) string {
	if machine, verdict := csrview.DecidedAbout(csr); verdict == decision.Approve && machine != "" {
		return machine
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

// decide puts a decision into the conditions of a request, in place of an earlier one.
func decide(conditions []certificatesv1.CertificateSigningRequestCondition, d decision.Decision, machine string) []certificatesv1.CertificateSigningRequestCondition {
	conditions = slices.DeleteFunc(conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == csrview.DecidedCondition
	})
	return append(conditions, csrview.Condition(d, machine, longestDetail))
}

// longest detail of a check that is written down. A request may ask for a thousand names.
const longestDetail = 400

func compact(d decision.Decision) string { return csrview.Encode(d, longestDetail) }
