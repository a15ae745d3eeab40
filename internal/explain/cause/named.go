// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"slices"
	"time"
)

// Named returns the identifier of the only cause that a code and a text show of an object that has stood still for a time,
// for parts that write it into conditions and Events. Returns "" if they show no cause, or several of which none
// excludes or implies the others: muster explain looks at more, and tells all of them.
func (c Catalogue) Named(source Source, code, text string, still time.Duration) ID {
	matching := c.Matching(source, code, text)
	left := slices.DeleteFunc(slices.Clone(matching), func(one Cause) bool {
		return still < one.Patience() || slices.ContainsFunc(matching, func(other Cause) bool {
			return slices.Contains(other.Excludes, one.ID) || slices.Contains(other.Implies, one.ID)
		})
	})
	if len(left) != 1 {
		return ""
	}
	return left[0].ID
}
