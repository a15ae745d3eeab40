// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
	"unicode"

	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
)

// The texts of rules are shown on terminals, by kubectl describe as well, which changes nothing of it: neither a user's
// name nor a name that is asked for moves the cursor, begins another line or turns the order of letters.
func TestWhatIsSaidIsPrintable(t *testing.T) {
	const (
		evil   = "\x1b[2J\n\b\u202e\u009b\x7f" // an identity provider may let people have such names
		inText = "\x1b[2j\n\b"                 // names of DNS are ASCII
	)
	called := func(name string) func(*world) { return func(w *world) { w.object.Spec.Username = name } }
	groups := func(names ...string) func(*world) {
		return func(w *world) { w.object.Spec.Groups = append(w.object.Spec.Groups, names...) }
	}
	names := func(w *world) {
		w.object.Spec.Request = rawNames(t, pkitest.GeneralName{Tag: 2, Value: []byte(inText)})
	}
	for name, change := range map[string]func(*world){
		"a stranger": called(evil), "a node": called("system:node:" + nodeA + evil), "a token": called("system:bootstrap:" + evil),
		"one who may not ask":       func(w *world) { w.object.Spec.Username += evil; w.facts.Access = know(false) },
		"one of whom that is open":  func(w *world) { w.object.Spec.Username += evil; w.facts.Access = policy.Fact[bool]{Why: evil} },
		"groups that bind":          groups("system:bootstrappers:muster:" + evil),
		"a name":                    names,
		"a name beside its own":     func(w *world) { names(w); w.facts.NodeMachine.Value.Names = []string{evil} },
		"a name that others have":   func(w *world) { names(w); w.facts.Owners[inText] = know([]string{evil}) },
		"a name that a node has":    func(w *world) { names(w); w.facts.Nodes[inText] = know(true); w.facts.Owners = nil },
		"a name of which is unsure": func(w *world) { names(w); w.facts.Owners[inText] = policy.Fact[[]string]{Why: evil} },
		"a usage":                   func(w *world) { w.object.Spec.Usages = append(w.object.Spec.Usages, evil) },
		"a key of somebody":         func(w *world) { w.facts.KeyOwner = know(evil) },
	} {
		for kind, w := range map[string]*world{
			"serving": serving(t, addrA), "renewal": renewal(t), "bootstrap": bootstrap(t), "service": person(t, appServing, user("a"), "a.default.svc"),
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				change(w)
				for _, c := range w.decide().Checks {
					if strings.ContainsFunc(c.Sentence(), func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) }) {
						t.Errorf("%s says %q", c.Rule, c.Sentence())
					}
				}
			})
		}
	}
}
