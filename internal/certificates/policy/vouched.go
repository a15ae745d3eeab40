// SPDX-License-Identifier: Apache-2.0

package policy

// Vouched reports whether the requester may ask for this node at all, as far as the request alone shows. Lookups are
// expensive and anyone may name any node, so none is done for a requester that is not vouched for.
func Vouched(p Policy, r Request) bool {
	e := evaluation{policy: p, request: r, node: r.nodeName()}
	if e.profile, _ = p.Profile(r.SignerName); !e.profile.Node {
		return true
	}
	e.who = identify(p, r)
	for _, check := range []func(evaluation) outcome{checkRequester, checkRequesterName, checkBootstrapName, checkBootstrapBinding} {
		if check(e).refuses() {
			return false
		}
	}
	return true
}
