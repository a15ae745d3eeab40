// SPDX-License-Identifier: Apache-2.0

package identity

import "fmt"

// Grant is what one entry gives to the principals that it names, for a person who reads the whole list.
type Grant struct {
	Source Source `json:"source"`
	Entry  string `json:"entry"`
	// Principal is what the entry names, as it was written: an ARN, a pattern or a whole account.
	Principal   string `json:"principal"`
	PrincipalID string `json:"principalID,omitempty"`
	// User and Groups may have variables in them, such as {{SessionName}}. User is empty where it is the principal's own ARN.
	User   string   `json:"user,omitempty"`
	Groups []string `json:"groups,omitempty"`
	// InstanceOnly reports whether a session has to be proven to be an instance's own.
	InstanceOnly bool `json:"instanceOnly,omitempty"`
	// Used reports whether the entry lets anybody in. Otherwise it is faulty, or the mode does not ask its source.
	Used    bool `json:"used"`
	Unasked bool `json:"unasked,omitempty"`
	// After is the entry of another source that names the same principal and is asked before; empty if there is none.
	After string `json:"after,omitempty"`
}

// Grants returns what all entries give, in the order in which they are asked, those that are not used among them.
func (t Table) Grants() []Grant {
	grants := make([]Grant, 0, len(t.rules))
	for i := range t.rules {
		r := &t.rules[i]
		g := Grant{
			Source: r.source, Entry: r.entry, Principal: r.subject, PrincipalID: r.principalID, User: r.username.source,
			InstanceOnly: r.proof != proofNone, Used: r.problem == nil && !r.idle, Unasked: r.idle, After: t.askedBefore(int32(i)),
		}
		for _, group := range r.groups {
			g.Groups = append(g.Groups, group.source)
		}
		grants = append(grants, g)
	}
	return grants
}

// askedBefore names the first entry in use that names the same principal as the one at a place, and comes before it.
func (t Table) askedBefore(place int32) string {
	r := &t.rules[place]
	for _, i := range t.byKey[r.key] {
		if i >= place {
			break
		}
		if e := &t.rules[i]; e.problem == nil && !e.idle && samePath(e.path, r.path) {
			return fmt.Sprintf("%s %s", e.source, e.entry)
		}
	}
	return ""
}
