// SPDX-License-Identifier: Apache-2.0

package identity

import "strings"

// Problem is something wrong with an entry, or with a source as a whole.
type Problem struct {
	Source Source `json:"source"`
	// Entry is how people find it: mapRoles[2], or the name of an object. It is empty where the source as a whole is
	// meant.
	Entry string `json:"entry,omitempty"`
	// Field is what is wrong in it.
	Field string `json:"field,omitempty"`
	// Saw is what is wrong.
	Saw string `json:"saw"`
	// Fix is what to do about it.
	Fix string `json:"fix"`
	// Unused means that the entry is left out because of this. Otherwise it is used as far as it goes.
	Unused bool `json:"unused"`
}

// String is the problem in one line.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(string(p.Source))
	for _, part := range []string{p.Entry, p.Field} {
		if part != "" {
			b.WriteString(" " + part)
		}
	}
	b.WriteString(": " + p.Saw)
	if p.Unused {
		b.WriteString("; the entry is not used")
	}
	if p.Fix != "" {
		b.WriteString("; " + p.Fix)
	}
	return b.String()
}
