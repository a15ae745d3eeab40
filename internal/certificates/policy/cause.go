// SPDX-License-Identifier: Apache-2.0

package policy

import "muster.dev/muster/internal/platform/decision"

// CauseOf returns the identifier of the cause for which a rule denies a request, as docs/causes.md has it and `muster
// explain` names it. A part that tells people of a denial writes the identifier, so that nobody has to guess it from the
// sentence.
func CauseOf(rule decision.RuleID) string {
	switch rule {
	case "machine":
		return "M-TLS-87"
	case "machine-cluster":
		return "M-IAM-88"
	}
	return "M-TLS-38"
}
