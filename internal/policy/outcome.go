// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strconv"
	"strings"

	"muster.dev/muster/internal/trace"
)

// outcome is what one rule says.
type outcome struct {
	outcome      trace.Outcome
	detail, hint string
	soon         bool
	evidence     bool
}

func pass(format string, args ...any) outcome {
	return outcome{outcome: trace.Pass, detail: fmt.Sprintf(format, args...)}
}

// witness is a pass by what somebody else knows, which is worth writing down: later it may be otherwise.
func witness(format string, args ...any) outcome {
	o := pass(format, args...)
	o.evidence = true
	return o
}

func refuse(hint, format string, args ...any) outcome {
	return outcome{outcome: trace.Refuse, detail: fmt.Sprintf(format, args...), hint: hint}
}

func wait(hint, format string, args ...any) outcome {
	return outcome{outcome: trace.Waiting, detail: fmt.Sprintf(format, args...), hint: hint}
}

// waitFor is for what a fact that is not known stands in the way of.
func waitFor[T any](f Fact[T], format string, args ...any) outcome {
	o := wait("", format+": %s", append(args, f.why())...)
	o.soon = f.State == Unknown && f.Soon
	return o
}

func notApplicable(why string) outcome {
	return outcome{outcome: trace.NotApplicable, detail: why}
}

func (o outcome) refuses() bool { return o.outcome == trace.Refuse }

func (o outcome) passes() bool {
	return o.outcome == trace.Pass || o.outcome == trace.NotApplicable
}

// printable makes a text safe to be shown on a terminal and as one line: users have any names that whoever authenticates them lets them
// have, and requests ask for any names. kubectl shows Events and conditions as they are.
func printable(text string) string {
	plain := true
	for i := range len(text) {
		plain = plain && ' ' <= text[i] && text[i] < 0x7f
	}
	if plain {
		return text // as nearly always
	}
	var b strings.Builder
	for _, r := range text { // what is not UTF-8 comes as U+FFFD
		if strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// Why a rule does not apply, in the same words wherever it is the same reason.
const (
	notANode     = "it is not about a node"
	notBootstrap = "no bootstrap token asks for a node's certificate"

	personApproved = "a person approved it"
)
