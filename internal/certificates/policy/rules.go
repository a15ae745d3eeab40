// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"sync"

	"muster.dev/muster/internal/platform/decision"
)

// rules, in the order they run. Their names are stable: they are in metrics, events, denials and documentation
// (docs/rules.md, a section for each).
var rules = sync.OnceValue(func() []rule {
	return []rule{
		// Is it ours to decide?
		{id: "signer", refusal: decision.Ignore, stops: true, check: checkSigner},
		{id: "undecided", refusal: decision.Ignore, stops: true, check: checkUndecided},
		{id: "manual-approval", refusal: decision.Ignore, final: true, check: checkManualApproval},

		// The content of the request, for each requester.
		{id: "shape", refusal: decision.Deny, stops: true, check: checkShape},
		{id: "key", refusal: decision.Deny, check: checkKey},
		{id: "organization", refusal: decision.Deny, check: checkOrganization},
		{id: "common-name", refusal: decision.Deny, check: checkCommonName},
		{id: "identity-reserved", refusal: decision.Deny, check: checkIdentityReserved},
		{id: "usages", refusal: decision.Deny, check: checkUsages},
		{id: "expiration", refusal: decision.Deny, check: checkExpiration},
		{id: "name-count", refusal: decision.Deny, check: checkNameCount},
		{id: "name-canonical", refusal: decision.Deny, check: checkNamesCanonical},
		{id: "name-reserved", refusal: decision.Deny, check: checkNamesReserved},
		{id: "address-reserved", refusal: decision.Deny, check: checkAddressesReserved},
		{id: "name-of-machine", refusal: decision.Deny, check: checkNamesOfMachines},

		// The requester: is it the machine whose names are asked for?
		{id: "requester", refusal: decision.Ignore, check: checkRequester},
		{id: "requester-name", refusal: decision.Deny, check: checkRequesterName},
		{id: "machine-cluster", refusal: decision.Deny, check: checkMachineCluster},
		{id: "credential", refusal: decision.Deny, check: checkCredential},
		{id: "key-owner", refusal: decision.Deny, check: checkKeyOwner},
		{id: "bootstrap-machine", refusal: decision.Deny, check: checkBootstrapMachine},
		{id: "bootstrap-name", refusal: decision.Deny, check: checkBootstrapName},
		{id: "bootstrap-group", refusal: decision.Deny, check: checkBootstrapGroup},
		{id: "bootstrap-binding", refusal: decision.Deny, check: checkBootstrapBinding},
		{id: "machine", refusal: decision.Deny, check: checkMachine},
		{id: "serving-renewal", refusal: decision.Deny, check: checkServingRenewal},
		{id: "bootstrap-window", refusal: decision.Deny, check: checkBootstrapWindow},
		{id: "existing-node", refusal: decision.Deny, check: checkExistingNode},
		{id: "bootstrap-spent", refusal: decision.Deny, check: checkBootstrapSpent},
		{id: "name-assigned", refusal: decision.Deny, check: checkNamesAssigned},
		{id: "address-assigned", refusal: decision.Deny, check: checkAddressesAssigned},
		{id: "access-review", refusal: decision.Deny, check: checkAccessReview},
	}
})

// rule is a rule of the policy. check returns Pass, Refuse, Waiting or NotApplicable.
type rule struct {
	id      decision.RuleID
	refusal decision.Verdict // the verdict if check returns Refuse
	stops   bool             // the rules after it cannot run if it does not pass
	final   bool             // if it refuses, no other rule changes the verdict; they run to tell what would come of it
	check   func(evaluation) outcome
}

// verdict of an outcome. An outcome other than Pass and NotApplicable never approves, and neither does anything
// unforeseen.
func (r rule) verdict(o decision.Outcome) decision.Verdict {
	switch o {
	case decision.Pass, decision.NotApplicable:
		return decision.Approve
	case decision.Waiting:
		return decision.Wait
	case decision.Refuse:
		return r.refusal
	default:
		return decision.Deny
	}
}

// RuleIDs lists all rules in the order they run.
func RuleIDs() []decision.RuleID {
	var ids []decision.RuleID
	for _, r := range rules() {
		ids = append(ids, r.id)
	}
	return ids
}

// Stops reports whether nothing more can be said after a rule spoke: the request is not ours, is done, or cannot be
// read.
func Stops(id decision.RuleID) bool {
	return slices.ContainsFunc(rules(), func(r rule) bool { return r.id == id && r.stops })
}
