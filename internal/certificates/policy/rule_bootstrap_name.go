// SPDX-License-Identifier: Apache-2.0

package policy

import "muster.dev/muster/internal/certificates/token"

// checkBootstrapName refuses a bootstrap token that is used for another node name than it was made for, by the name
// itself or by a pattern.
func checkBootstrapName(e evaluation) outcome {
	if e.who.kind != bootstrap {
		return notApplicable(notBootstrap)
	}
	name, byName := e.who.scopes[token.ScopeName]
	pattern, byPattern := e.who.scopes[token.ScopePattern]
	asked := e.node
	switch {
	case !byName && !byPattern:
		return notApplicable("the token names no node")
	case byName && name != asked:
		return refuse("make a token for this node", "the token was made for node %s, not %s", name, asked)
	case byPattern && !token.MatchName(pattern, asked):
		return refuse("make a token for this node", "the token was made for nodes called %s, not %s", pattern, asked)
	}
	return pass("the token was made for node %s", asked)
}
