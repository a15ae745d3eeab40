// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	v1alpha1 "muster.dev/muster/api/v1alpha1"
)

// ScopeKind says by what a token names the machines that it is good for.
type ScopeKind string

// The kinds of scopes.
const (
	ScopeMachine ScopeKind = "machine" // the ID of one machine
	ScopeName    ScopeKind = "name"    // the name of one node
	ScopeGroup   ScopeKind = "group"   // a group of machines
	ScopePattern ScopeKind = "pattern" // a pattern of node names, see MatchName
	ScopeRejoin  ScopeKind = "rejoin"  // the name of one node that is there already, and may join again
)

// Scope is what a token is good for. It is in the token's extra group, which the API server writes into every request
// made with the token, so nobody who only holds the token can change it.
type Scope struct {
	Kind  ScopeKind
	Value string
}

const (
	groupAlphabet = alphabet + "-"
	// maxGroup is what upstream allows behind system:bootstrappers: (k8s.io/cluster-bootstrap/token/api,
	// BootstrapGroupPattern).
	maxGroup = len("system:bootstrappers:") + 256
)

// Group returns the extra group that binds a token to the scope:
//
//	system:bootstrappers:muster:<machine ID>
//	system:bootstrappers:muster:name:<node name, dots as colons>
//	system:bootstrappers:muster:group:<group of machines>
//	system:bootstrappers:muster:pattern:<pattern in hexadecimal>
//	system:bootstrappers:muster:rejoin:<node name, dots as colons>
//
// Upstream allows lower case letters, digits, - and : in such a group, which is why names are written in another way.
func (s Scope) Group() (string, error) {
	if err := s.check(); err != nil {
		return "", err
	}
	var group string
	switch s.Kind {
	case ScopeMachine:
		group = s.Value
	case ScopeName, ScopeRejoin:
		group = string(s.Kind) + ":" + strings.ReplaceAll(s.Value, ".", ":")
	case ScopeGroup:
		group = "group:" + s.Value
	case ScopePattern:
		group = "pattern:" + hex.EncodeToString([]byte(s.Value))
	}
	group = v1alpha1.BootstrapGroupPrefix + group
	if len(group) > maxGroup || strings.HasSuffix(group, "-") {
		return "", fmt.Errorf("the %s %q cannot be written as a group of a bootstrap token: it is too long or ends with -", s.Kind, s.Value)
	}
	return group, nil
}

func (s Scope) check() error {
	switch s.Kind {
	case ScopeMachine, ScopeGroup:
		if s.Value == "" || strings.Trim(s.Value, groupAlphabet) != "" {
			return fmt.Errorf("the %s %q cannot be written as a group of a bootstrap token, which may hold a-z, 0-9 and - only", s.Kind, s.Value)
		}
	case ScopeName, ScopeRejoin:
		if why := validation.IsDNS1123Subdomain(s.Value); len(why) > 0 {
			return fmt.Errorf("%q is not the name of a node: %s", s.Value, why[0])
		}
	case ScopePattern:
		return CheckPattern(s.Value)
	default:
		return fmt.Errorf("a token cannot be bound by %q", s.Kind)
	}
	return nil
}

// ParseGroup reads the scope from a group, and returns false if the group is none of these. An error means that the
// group was meant to bind a token, and cannot be read in the one way there is.
func ParseGroup(group string) (Scope, bool, error) {
	text, ok := strings.CutPrefix(group, v1alpha1.BootstrapGroupPrefix)
	if !ok {
		return Scope{}, false, nil
	}
	s := Scope{Kind: ScopeMachine, Value: text}
	if kind, value, ok := strings.Cut(text, ":"); ok {
		s = Scope{Kind: ScopeKind(kind), Value: value}
		switch s.Kind {
		case ScopeName, ScopeRejoin:
			s.Value = strings.ReplaceAll(value, ":", ".")
		case ScopePattern:
			pattern, err := hex.DecodeString(value)
			if err != nil {
				return Scope{}, true, fmt.Errorf("the group %q holds no pattern in hexadecimal", group)
			}
			s.Value = string(pattern)
		case ScopeGroup:
		default:
			return Scope{}, true, fmt.Errorf("the group %q binds a token by %q, which is not known", group, kind)
		}
	}
	if again, err := s.Group(); err != nil || again != group {
		return Scope{}, true, fmt.Errorf("the group %q cannot be read: %w", group, errors.Join(err, errNotCanonical))
	}
	return s, true, nil
}

var errNotCanonical = errors.New("there is one way to write each, as muster does")

// CheckPattern refuses patterns of node names that MatchName does not understand.
func CheckPattern(pattern string) error {
	if pattern == "" || strings.Trim(pattern, groupAlphabet+".*?") != "" {
		return fmt.Errorf("%q is not a pattern of node names; it may hold a-z, 0-9, -, . and the wildcards * and ?", pattern)
	}
	return nil
}

// MatchName reports whether a node's name fits a pattern: * stands for any characters and ? for one, but neither for a
// dot, so worker-* means the names in one domain and not what somebody hangs below it.
func MatchName(pattern, name string) bool {
	if CheckPattern(pattern) != nil {
		return false
	}
	ok, err := path.Match(strings.ReplaceAll(pattern, ".", "/"), strings.ReplaceAll(name, ".", "/"))
	return ok && err == nil
}

// agree refuses scopes that no node's name could meet together.
func agree(scopes []Scope) error {
	for _, a := range scopes {
		if a.Kind != ScopeName && a.Kind != ScopeRejoin {
			continue
		}
		for _, b := range scopes {
			other := (b.Kind == ScopeName || b.Kind == ScopeRejoin) && b.Value != a.Value
			if other || b.Kind == ScopePattern && !MatchName(b.Value, a.Value) {
				return fmt.Errorf("no node could use the token: it is bound to the %s %q and to the %s %q, and no node name is both", a.Kind, a.Value, b.Kind, b.Value)
			}
		}
	}
	return nil
}
