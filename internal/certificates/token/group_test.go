// SPDX-License-Identifier: Apache-2.0

package token_test

import (
	"regexp"
	"strings"
	"testing"

	"muster.dev/muster/internal/certificates/token"
)

// upstream is what auth-extra-groups of a bootstrap token may be (k8s.io/cluster-bootstrap/token/api,
// BootstrapGroupPattern).
var upstream = regexp.MustCompile(`\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z`)

func TestScopeAsGroup(t *testing.T) {
	for _, tc := range []struct {
		name  string
		scope token.Scope
		want  string // "": refused
	}{
		{"a machine", token.Scope{Kind: token.ScopeMachine, Value: "i-0123456789abcdef0"}, "system:bootstrappers:muster:i-0123456789abcdef0"},
		{"a machine that is called like a kind", token.Scope{Kind: token.ScopeMachine, Value: "name"}, "system:bootstrappers:muster:name"},
		{"a name", token.Scope{Kind: token.ScopeName, Value: "worker-1.corp.example"}, "system:bootstrappers:muster:name:worker-1:corp:example"},
		{"a name of one label", token.Scope{Kind: token.ScopeName, Value: "a"}, "system:bootstrappers:muster:name:a"},
		{"a group", token.Scope{Kind: token.ScopeGroup, Value: "workers"}, "system:bootstrappers:muster:group:workers"},
		{"a pattern", token.Scope{Kind: token.ScopePattern, Value: "worker-*"}, "system:bootstrappers:muster:pattern:776f726b65722d2a"},
		{"a node that joins again", token.Scope{Kind: token.ScopeRejoin, Value: "worker-1.corp.example"}, "system:bootstrappers:muster:rejoin:worker-1:corp:example"},
		{"no node that joins again", token.Scope{Kind: token.ScopeRejoin}, ""},
		{"no machine", token.Scope{Kind: token.ScopeMachine}, ""},
		{"a machine with a colon, which would be another kind", token.Scope{Kind: token.ScopeMachine, Value: "group:workers"}, ""},
		{"a machine with upper case letters", token.Scope{Kind: token.ScopeMachine, Value: "I-0"}, ""},
		{"a machine that ends with -", token.Scope{Kind: token.ScopeMachine, Value: "i-"}, ""},
		{"no name", token.Scope{Kind: token.ScopeName}, ""},
		{"a name that no node may have", token.Scope{Kind: token.ScopeName, Value: "a_b"}, ""},
		{"a name with a colon", token.Scope{Kind: token.ScopeName, Value: "a:b"}, ""},
		{"a name that is too long", token.Scope{Kind: token.ScopeName, Value: strings.Repeat("a.", 126) + "a"}, ""},
		{"a group with a dot", token.Scope{Kind: token.ScopeGroup, Value: "a.b"}, ""},
		{"no pattern", token.Scope{Kind: token.ScopePattern}, ""},
		{"a pattern with a class", token.Scope{Kind: token.ScopePattern, Value: "[ab]"}, ""},
		{"a pattern with a slash", token.Scope{Kind: token.ScopePattern, Value: "a/b"}, ""},
		{"a pattern that is too long", token.Scope{Kind: token.ScopePattern, Value: strings.Repeat("a", 130)}, ""},
		{"another kind", token.Scope{Kind: "zone", Value: "a"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.scope.Group()
			if got != tc.want || (err != nil) != (tc.want == "") {
				t.Fatalf("got %q, %v", got, err)
			}
			if err != nil {
				return
			}
			if !upstream.MatchString(got) {
				t.Errorf("upstream refuses %q", got)
			}
			if back, ok, err := token.ParseGroup(got); !ok || err != nil || back != tc.scope {
				t.Errorf("read back as %+v, %v, %v", back, ok, err)
			}
		})
	}
}

func TestParseGroupIsStrict(t *testing.T) {
	for _, other := range []string{"system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", "system:bootstrappers:muster", "muster:i-1"} {
		if s, ok, err := token.ParseGroup(other); ok || err != nil {
			t.Errorf("%q is none of ours, but was read as %+v, %v", other, s, err)
		}
	}
	for name, group := range map[string]string{
		"nothing":                "",
		"an unknown kind":        "zone:a",
		"an empty kind":          ":a",
		"an empty name":          "name:",
		"an empty label":         "name:a::b",
		"a name with a dot":      "name:a.b",
		"an empty group":         "group:",
		"no node to join again":  "rejoin:",
		"a group with a colon":   "group:a:b",
		"an empty pattern":       "pattern:",
		"half a byte":            "pattern:7",
		"upper case hexadecimal": "pattern:2A",
		"no hexadecimal":         "pattern:worker",
		"a pattern of a slash":   "pattern:2f",
		"upper case":             "I-1",
		"a space":                "i 1",
		"an explicit machine":    "machine:i-1",
	} {
		t.Run(name, func(t *testing.T) {
			if s, ok, err := token.ParseGroup("system:bootstrappers:muster:" + group); !ok || err == nil {
				t.Errorf("got %+v, %v, %v", s, ok, err)
			}
		})
	}
}

func TestMatchName(t *testing.T) {
	for _, tc := range []struct {
		pattern, name string
		want          bool
	}{
		{"worker-*", "worker-1", true},
		{"worker-*", "worker-", true},
		{"worker-?", "worker-1", true},
		{"worker-?", "worker-12", false},
		{"worker-*", "aworker-1", false},
		{"worker-*", "worker-1.evil.example", false},
		{"worker-*.corp.example", "worker-1.corp.example", true},
		{"worker-*.corp.example", "worker-1.a.corp.example", false},
		{"*", "a", true},
		{"*", "a.b", false},
		{"*.b", "a.b", true},
		{"a?b", "a.b", false},
		{"a.b", "a.b", true},
		{"a.b", "axb", false},
		{"", "", false},
		{"[a]", "a", false},
		{`\a`, "a", false},
	} {
		if got := token.MatchName(tc.pattern, tc.name); got != tc.want {
			t.Errorf("%q and %q: %v", tc.pattern, tc.name, got)
		}
	}
}

// FuzzParseGroup holds that a group is read in one way: an accepted one is written back byte for byte.
func FuzzParseGroup(f *testing.F) {
	for _, s := range []string{"i-1", "name:a:b", "group:workers", "pattern:2a", "name::", "pattern:2A"} {
		f.Add("system:bootstrappers:muster:" + s)
	}
	f.Fuzz(func(t *testing.T, group string) {
		s, ok, err := token.ParseGroup(group)
		if !ok || err != nil {
			return
		}
		if back, err := s.Group(); err != nil || back != group {
			t.Errorf("%q became %+v, then %q, %v", group, s, back, err)
		}
		if !upstream.MatchString(group) {
			t.Errorf("upstream refuses %q", group)
		}
	})
}
