// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"sync"

	"muster.dev/muster/internal/trace"
)

// rules, in the order they run. Their names are stable: they are in metrics, events, denials and documentation
// (docs/rules.md, a section for each).
var rules = sync.OnceValue(func() []rule {
	return []rule{
		// Is it ours to decide?
		{id: "signer", refusal: trace.Ignore, stops: true, check: checkSigner},
		{id: "undecided", refusal: trace.Ignore, stops: true, check: checkUndecided},
		{id: "manual-approval", refusal: trace.Ignore, final: true, check: checkManualApproval},

		// What is asked for, whoever asks.
		{id: "shape", refusal: trace.Deny, stops: true, check: checkShape},
		{id: "key", refusal: trace.Deny, check: checkKey},
		{id: "organization", refusal: trace.Deny, check: checkOrganization},
		{id: "common-name", refusal: trace.Deny, check: checkCommonName},
		{id: "identity-reserved", refusal: trace.Deny, check: checkIdentityReserved},
		{id: "usages", refusal: trace.Deny, check: checkUsages},
		{id: "expiration", refusal: trace.Deny, check: checkExpiration},
		{id: "name-count", refusal: trace.Deny, check: checkNameCount},
		{id: "name-canonical", refusal: trace.Deny, check: checkNamesCanonical},
		{id: "name-reserved", refusal: trace.Deny, check: checkNamesReserved},
		{id: "address-reserved", refusal: trace.Deny, check: checkAddressesReserved},
		{id: "name-of-machine", refusal: trace.Deny, check: checkNamesOfMachines},

		// Who asks, and is that the machine whose names are asked for?
		{id: "requester", refusal: trace.Ignore, check: checkRequester},
		{id: "requester-name", refusal: trace.Deny, check: checkRequesterName},
		{id: "credential", refusal: trace.Deny, check: checkCredential},
		{id: "key-owner", refusal: trace.Deny, check: checkKeyOwner},
		{id: "bootstrap-machine", refusal: trace.Deny, check: checkBootstrapMachine},
		{id: "bootstrap-name", refusal: trace.Deny, check: checkBootstrapName},
		{id: "bootstrap-group", refusal: trace.Deny, check: checkBootstrapGroup},
		{id: "bootstrap-binding", refusal: trace.Deny, check: checkBootstrapBinding},
		{id: "machine", refusal: trace.Deny, check: checkMachine},
		{id: "serving-renewal", refusal: trace.Deny, check: checkServingRenewal},
		{id: "bootstrap-window", refusal: trace.Deny, check: checkBootstrapWindow},
		{id: "existing-node", refusal: trace.Deny, check: checkExistingNode},
		{id: "bootstrap-spent", refusal: trace.Deny, check: checkBootstrapSpent},
		{id: "name-assigned", refusal: trace.Deny, check: checkNamesAssigned},
		{id: "address-assigned", refusal: trace.Deny, check: checkAddressesAssigned},
		{id: "access-review", refusal: trace.Deny, check: checkAccessReview},
	}
})

// rule is one of them. check returns Pass, Refuse, Waiting or NotApplicable.
type rule struct {
	id      trace.RuleID
	refusal trace.Verdict // what a Refuse leads to
	stops   bool          // the rules after it cannot run if it does not pass
	final   bool          // if it refuses, no other rule changes the verdict; they run to tell what would come of it
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

// RuleIDs lists all rules in the order they run.
func RuleIDs() []trace.RuleID {
	var ids []trace.RuleID
	for _, r := range rules() {
		ids = append(ids, r.id)
	}
	return ids
}

// Stops tells whether nothing more can be said after a rule spoke: the request is not ours, is done, or cannot be read.
func Stops(id trace.RuleID) bool {
	return slices.ContainsFunc(rules(), func(r rule) bool { return r.id == id && r.stops })
}
