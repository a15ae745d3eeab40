// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"muster.dev/muster/internal/trace"
)

// rules, in the order they run. Their names are stable: they are in metrics, events, denials and documentation.
func rules() []rule {
	return []rule{
		// Is it ours to decide?
		{id: "signer", refusal: trace.Ignore, stops: true, check: checkSigner},
		{id: "undecided", refusal: trace.Ignore, stops: true, check: checkUndecided},

		// What is asked for, whoever asks.
		{id: "shape", refusal: trace.Deny, stops: true, check: checkShape},
		{id: "key", refusal: trace.Deny, check: checkKey},
		{id: "organization", refusal: trace.Deny, check: checkOrganization},
		{id: "common-name", refusal: trace.Deny, check: checkCommonName},
		{id: "usages", refusal: trace.Deny, check: checkUsages},
		{id: "expiration", refusal: trace.Deny, check: checkExpiration},
		{id: "name-count", refusal: trace.Deny, check: checkNameCount},
		{id: "name-canonical", refusal: trace.Deny, check: checkNamesCanonical},
		{id: "name-reserved", refusal: trace.Deny, check: checkNamesReserved},
		{id: "address-reserved", refusal: trace.Deny, check: checkAddressesReserved},

		// Who asks, and is that the machine whose names are asked for?
		{id: "requester", refusal: trace.Ignore, check: checkRequester},
		{id: "requester-name", refusal: trace.Deny, check: checkRequesterName},
		{id: "bootstrap-machine", refusal: trace.Deny, check: checkBootstrapMachine},
		{id: "machine", refusal: trace.Deny, check: checkMachine},
		{id: "name-assigned", refusal: trace.Deny, check: checkNamesAssigned},
		{id: "address-assigned", refusal: trace.Deny, check: checkAddressesAssigned},
		{id: "access-review", refusal: trace.Deny, check: checkAccessReview},
	}
}

// rule is one of them. check returns Pass, Refuse, Waiting or NotApplicable.
type rule struct {
	id      trace.RuleID
	refusal trace.Verdict // what a Refuse leads to
	stops   bool          // the rules after it cannot run if it does not pass
	check   func(evaluation) outcome
}

// verdict of an outcome. What is neither Pass nor NotApplicable never approves, and neither does anything unforeseen.
func (r rule) verdict(o trace.Outcome) trace.Verdict {
	switch o {
	case trace.Pass, trace.NotApplicable:
		return trace.Approve
	case trace.Waiting:
		return trace.Wait
	case trace.Refuse:
		return r.refusal
	default:
		return trace.Deny
	}
}

type outcome struct {
	outcome      trace.Outcome
	detail, hint string
}

func pass(format string, args ...any) outcome {
	return outcome{outcome: trace.Pass, detail: fmt.Sprintf(format, args...)}
}

func refuse(hint, format string, args ...any) outcome {
	return outcome{outcome: trace.Refuse, detail: fmt.Sprintf(format, args...), hint: hint}
}

func wait(hint, format string, args ...any) outcome {
	return outcome{outcome: trace.Waiting, detail: fmt.Sprintf(format, args...), hint: hint}
}

func notApplicable(why string) outcome {
	return outcome{outcome: trace.NotApplicable, detail: why}
}

func (o outcome) refuses() bool { return o.outcome == trace.Refuse }
