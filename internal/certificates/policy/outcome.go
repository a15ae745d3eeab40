// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"muster.dev/muster/internal/platform/decision"
)

// outcome is what one rule says.
type outcome struct {
	outcome      decision.Outcome
	detail, hint string
	soon         bool
	evidence     bool
}

func pass(format string, args ...any) outcome {
	return outcome{outcome: decision.Pass, detail: fmt.Sprintf(format, args...)}
}

// witness is a pass by what somebody else knows, which is worth writing down: later it may be otherwise.
func witness(format string, args ...any) outcome {
	o := pass(format, args...)
	o.evidence = true
	return o
}

func refuse(hint, format string, args ...any) outcome {
	return outcome{outcome: decision.Refuse, detail: fmt.Sprintf(format, args...), hint: hint}
}

func wait(hint, format string, args ...any) outcome {
	return outcome{outcome: decision.Waiting, detail: fmt.Sprintf(format, args...), hint: hint}
}

// waitFor is for what a fact that is not known stands in the way of.
func waitFor[T any](f Fact[T], format string, args ...any) outcome {
	o := wait("", format+": %s", append(args, f.why())...)
	o.soon = f.State == Unknown && f.Soon
	return o
}

func notApplicable(why string) outcome {
	return outcome{outcome: decision.NotApplicable, detail: why}
}

func (o outcome) refuses() bool { return o.outcome == decision.Refuse }

func (o outcome) passes() bool {
	return o.outcome == decision.Pass || o.outcome == decision.NotApplicable
}

// Why a rule does not apply, in the same words wherever it is the same reason.
const (
	notANode     = "it is not about a node"
	notBootstrap = "no bootstrap token asks for a node's certificate"

	personApproved = "a person approved it"
)
