// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// Bootstrap is about tokens that are not bound to a machine by a group of their own.
type Bootstrap struct {
	// UnboundTokens accepts a token that nothing binds, for any machine of the inventory that is not a node yet. Else
	// such requests are left to a person.
	UnboundTokens bool
	// Window is how long after a machine was made a first certificate may be asked for. 0 means no limit.
	Window time.Duration
	// Bindings narrow what tokens are good for.
	Bindings []Binding
}

// Binding makes tokens whose requester is in Group good for these machines only. Of several bindings of one group any
// is enough; of several groups all must agree.
//
// With User instead, somebody who holds no token, such as the service account of a bootstrapper or a person, may ask
// for the certificates of these machines, as RBAC alone lets that user where upstream's approver decides. Nodes and
// tokens are never bound by it.
type Binding struct {
	Group, User string
	// NodeNames are patterns such as worker-*: see token.MatchName. Empty means any name.
	NodeNames []string
	// MachineGroups are names as in Machine.Group. Empty means any group.
	MachineGroups []string
}

// who returns the group or user that is bound, in words.
func (b Binding) who() string {
	if b.User != "" {
		return b.User
	}
	return b.Group
}
