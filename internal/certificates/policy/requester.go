// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/token"
)

const (
	bootstrapUserPrefix = "system:bootstrap:"
	bootstrappersGroup  = "system:bootstrappers"
)

// kind of requester.
type kind int

const (
	stranger  kind = iota // a person, a service account: a requester that the rules do not vouch for
	node                  // a node, by its client certificate
	bootstrap             // a bootstrap token, good for what binds it, or a user that the policy lets ask like one
	unbound               // a bootstrap token that is good for nothing here; why says why
	garbled               // a bootstrap token that something was meant to bind, which cannot be read; why says why
)

// requester is what the API server says about the requester.
type requester struct {
	kind kind
	// scopes of a bootstrap token, by its own groups: at most one of each kind, and all of them must agree.
	scopes map[token.ScopeKind]string
	// bindings of the policy that are about one of its groups.
	bindings []Binding
	why      string
}

// machine is the ID of the machine that a bootstrap token was made for, "" if it names none.
func (q requester) machine() string { return q.scopes[token.ScopeMachine] }

// identify sorts the requester by user name and groups. Only the API server writes these.
func identify(p Policy, r Request) requester {
	switch {
	case strings.HasPrefix(r.Username, nodeUserPrefix) && slices.Contains(r.Groups, nodesGroup):
		return requester{kind: node}
	case isBootstrapUser(r.Username) && slices.Contains(r.Groups, bootstrappersGroup):
		return p.identifyToken(r.Groups)
	default:
		return p.identifyUser(r.Username)
	}
}

// identifyUser finds what the policy lets a requester ask for that is neither a node nor a token. Names with a prefix
// of Kubernetes' own are nobody's to choose in a policy file, except those of service accounts.
func (p Policy) identifyUser(name string) requester {
	q := requester{kind: bootstrap}
	for _, b := range p.Bootstrap.Bindings {
		if b.User != "" && b.User == name && (!strings.HasPrefix(name, "system:") || strings.HasPrefix(name, "system:serviceaccount:")) {
			q.bindings = append(q.bindings, b)
		}
	}
	if len(q.bindings) == 0 {
		return requester{kind: stranger}
	}
	return q
}

func (p Policy) identifyToken(groups []string) requester {
	q := requester{kind: bootstrap, scopes: map[token.ScopeKind]string{}}
	for _, g := range groups {
		s, ok, err := token.ParseGroup(g)
		switch {
		case err != nil: // it was meant to bind the token: then nothing else may decide what the token is good for
			return requester{kind: garbled, why: strings.ReplaceAll(err.Error(), "\n", "; ")}
		case !ok:
			continue
		case q.scopes[s.Kind] != "":
			return requester{kind: garbled, why: fmt.Sprintf("it names two of the kind %s: %s and %s", s.Kind, q.scopes[s.Kind], s.Value)}
		}
		q.scopes[s.Kind] = s.Value
	}
	for _, b := range p.Bootstrap.Bindings {
		if b.User == "" && slices.Contains(groups, b.Group) {
			q.bindings = append(q.bindings, b)
		}
	}
	if len(q.scopes)+len(q.bindings) == 0 && !p.Bootstrap.UnboundTokens {
		return requester{kind: unbound, why: "it was not made for a machine"}
	}
	return q
}

// The user name that the API server gives to a bootstrap token: its public half.
func isBootstrapUser(name string) bool {
	id, ok := strings.CutPrefix(name, bootstrapUserPrefix)
	return ok && len(id) == 6 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// subresource whose creation the requester must be allowed: "" if no rule vouches for it.
func subresource(r Request, who requester) string {
	switch {
	case who.kind == node && r.SignerName == pki.SignerKubeletServing:
		return "selfnodeserver"
	case who.kind == node && r.SignerName == pki.SignerKubeletClient:
		return "selfnodeclient"
	case who.kind == bootstrap && r.SignerName == pki.SignerKubeletClient:
		return "nodeclient"
	default:
		return ""
	}
}
