// SPDX-License-Identifier: Apache-2.0

package policy

// Vouched reports whether the requester may ask for this node at all, as far as that shows without any fact. Facts about a node that
// anybody may name cost whoever gathers them more than they cost him; nobody else's request is worth them.
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
