// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// checkKeyOwner refuses a key that was certified for another node before. A kubelet makes a new key forevery request,
// so a key that comes back for another node was copied: from an image that was made of a running node, or by a thief.
// It stays with its node forever, and a person's approval does not change that.
func checkKeyOwner(e evaluation) outcome {
	if e.undecidedByPeople() {
		return notApplicable(onceApproved)
	}
	owner := e.facts.KeyOwner
	someNode := owner.Value != "" && !strings.Contains(owner.Value, ":") // no node's name has a colon: it is a user's
	switch {
	case owner.State == Unknown:
		return waitFor(owner, "whether the key was certified for another node is not known")
	case owner.State == Absent:
		return pass("the key was never certified")
	case !e.profile.Node && someNode:
		return refuse("make a new key", "the key was certified for node %s", owner.Value)
	case !e.profile.Node:
		return pass("the key was never certified for a node")
	case !someNode:
		return refuse("make a new key", "the key was certified for something else than a node")
	case owner.Value != e.node:
		return refuse("make a new key", "the key was certified for node %s", owner.Value)
	}
	return pass("the key was certified for this node before")
}
