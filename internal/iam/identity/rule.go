// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"muster.dev/muster/internal/platform/decision"
)

// proof is what a session must have shown before it gets a name.
type proof int

const (
	proofNone    proof = iota
	proofEC2           // the session is that of an instance, and named after it
	proofSession       // the same, or it is named as the instance's node is; or its name is trusted
)

// rule is an entry that has been read.
type rule struct {
	source  Source
	entry   string
	subject string // the principal that it names, as it was written
	kind    Kind
	idle    bool // the mode does not ask its source
	key     key  // of one principal; with no name where it is for many
	path    string
	pattern string // of the names of roles, in lower case

	principalID string
	byID        bool // the id alone names the principal
	username    template
	groups      []template
	fixed       []string // groups, if nothing is to be filled in
	proof       proof
	trusted     *trustedRole // the role whose sessions' names are proven, with proofSession; may be nil
	hint        string       // advice for a session whose name is not proven
	reserved    []string
	nodes       bool     // its user is a node, or may ask for a node's certificate
	cluster     string   // the name of the cluster that asks
	problem     *Problem // why it is not used
}

// The rules that an outcome names.
const (
	RulePrincipal      decision.RuleID = "principal"       // the parts of STS's answer contradict each other
	RuleNoEntry        decision.RuleID = "no-entry"        // no entry names it
	RuleMatch          decision.RuleID = "match"           // the entry names it, or another
	RuleEntry          decision.RuleID = "entry"           // the entry names it, but is wrong
	RuleMode           decision.RuleID = "mode"            // the entry names it, but its source is not asked
	RulePrincipalID    decision.RuleID = "principal-id"    // the entry is for another principal of that name
	RuleInstance       decision.RuleID = "instance"        // a node's name is only for a session that is proven to be its own
	RuleTrustedName    decision.RuleID = "trusted-name"    // a session is a node because its name is trusted, or none because it is not
	RuleMachineCluster decision.RuleID = "machine-cluster" // a machine is a node of the cluster that it was launched for alone
	RuleSessionName    decision.RuleID = "session-name"    // the name of the session cannot stand in a user's
	RuleVariable       decision.RuleID = "variable"        // there is nothing to fill in
	RuleReserved       decision.RuleID = "reserved"        // the resulting name is reserved for others
)

// matches reports whether the entry is for the principal of that key, and otherwise the rule by which not.
func (r *rule) matches(p Principal, k key, path string) (decision.RuleID, bool) {
	if r.kind == KindAccount {
		return RuleMatch, r.key.account == p.Account
	}
	if r.byID {
		return RuleMatch, r.kind == k.kind && r.principalID == p.UserID
	}
	if r.key.partition != k.partition || r.key.account != k.account {
		return RuleMatch, false
	}
	switch r.kind {
	case KindSSO:
		set, ok := permissionSet(k.name)
		if k.kind != KindRole || !ok || set != r.pattern {
			return RuleMatch, false
		}
	default:
		if r.kind != k.kind || r.pattern == "" && r.key.name != k.name || r.pattern != "" && !glob(r.pattern, k.name) {
			return RuleMatch, false
		}
		if !samePath(r.path, path) {
			return RuleMatch, false
		}
	}
	return RulePrincipalID, r.principalID == "" || r.principalID == p.UserID
}
