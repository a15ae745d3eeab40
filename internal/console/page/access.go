// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"
	"strings"

	"muster.dev/muster/internal/console/view"
)

// stated is the state of an entry, for its pill.
type stated struct{ Tone, Word string }

// state is the state of an entry in words.
func state(s view.GrantState) stated {
	switch s {
	case view.GrantUsed:
		return stated{"good", "used"}
	case view.GrantAfter:
		return stated{"wait", "second"}
	case view.GrantUnasked:
		return stated{"wait", "not asked"}
	case view.GrantUnused:
	}
	return stated{"bad", "not used"}
}

// roleName is what comes behind the account in the ARN of a role: role/team/deploy.
func roleName(arn string) string {
	if parts := strings.SplitN(arn, ":", 6); len(parts) == 6 {
		return parts[5]
	}
	return arn
}

// usable reports whether a token lets its holder in.
func usable(t view.Token) bool { return slices.Contains(t.Usages, "authentication") }

// concrete reports whether muster auth check can be asked about the principal of an entry: it is not a pattern, an account or
// something else that the entry should not name.
func concrete(g view.Grant) bool {
	return g.State != view.GrantUnused && strings.HasPrefix(g.Principal, "arn:") && !strings.Contains(g.Principal, "*")
}

// checkable reports whether muster auth check explains what the sender of a refused token would become.
func checkable(r view.Refusal) bool { return r.Cluster != "" && strings.HasPrefix(r.Principal, "arn:") }

// refusalAnchor is the id of a refusal, which stays while more of the same come.
func refusalAnchor(r view.Refusal) string {
	key := r.AccessKeyID
	if r.Principal != "" {
		key = ""
	}
	return anchor("refusal", r.By, r.Cluster, r.Principal, key, r.Machine, r.Action, r.Resource, r.Rule, r.From)
}
