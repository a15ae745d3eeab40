// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// checkUsages refuses any usage too many: a serving certificate that is a client's as well would be a second identity.
func checkUsages(e evaluation) outcome {
	p := e.profile
	if p.AllowsUsages(e.request.Usages) {
		return pass("%q", e.request.Usages)
	}
	hint := "there may be " + strings.Join(p.MayUse, ", ")
	if len(p.Usages) > 0 {
		hint = "there must be " + strings.Join(p.Usages, " and ") + ", and " + hint
	}
	return refuse(hint+", each once and nothing else", "the usages are %q", e.request.Usages)
}
