// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/arn"
)

// TrustedSessions says of a role that a service names its sessions, and not the caller that assumes it, so that each is
// the node of its name. Nothing that STS says shows whether that is so. It is therefore for the authenticator's
// operator to say, and never for an entry.
type TrustedSessions struct {
	Role arn.ARN
	// Names of its sessions that are trusted; one * in a name stands for any number of characters.
	Names []string
}

// maxSessionName is how long the name of a session may be (AssumeRole, RoleSessionName).
const maxSessionName = 64

// CheckTrustedRole returns an error unless the ARN is a role's.
func CheckTrustedRole(role arn.ARN) error {
	if _, _, ok := role.Role(); !ok {
		return errors.New("must be arn:aws:iam::ACCOUNT:role/NAME, with the role's path if it has one")
	}
	return nil
}

// CheckTrustedName says what a name must be if no node could have it, or nearly every session.
func CheckTrustedName(name string) error {
	switch {
	case len(name) > maxSessionName:
		return fmt.Errorf("must be at most %d characters, as no session has a longer name", maxSessionName)
	case strings.Count(name, "*") > 1:
		return errors.New("must have one * at most")
	case len(strings.ReplaceAll(name, "*", "")) < minPattern:
		return fmt.Errorf("must have at least %d characters beside *, as with less it is nearly every name", minPattern)
	case !isNodeName(strings.ReplaceAll(name, "*", "x")):
		return errors.New("must be the name of a node, of lower-case letters, digits, - and ., with one * for any of them")
	case ofInstance(name):
		return errors.New("must not begin with i- or ip-, as names of instances do: these are proven and never trusted")
	}
	return nil
}

// ofInstance reports whether a name is of the form that instances have, by their ids and their private DNS names (EC2,
// "instance hostname types"). No session becomes such a node because its name is trusted, so that none takes the name
// of an instance.
func ofInstance(name string) bool {
	return strings.HasPrefix(name, "i-") || strings.HasPrefix(name, "ip-")
}

// trustedRole is one of TrustedSessions that has been read.
type trustedRole struct {
	role  arn.ARN
	path  string
	names []string
}

// check says the first thing that is wrong.
func (t TrustedSessions) check() error {
	if err := CheckTrustedRole(t.Role); err != nil {
		return fmt.Errorf("%q %w", clip(t.Role.String()), err)
	}
	if len(t.Names) == 0 {
		return fmt.Errorf("%s has no names", t.Role)
	}
	for _, name := range t.Names {
		if err := CheckTrustedName(name); err != nil {
			return fmt.Errorf("%q %w", clip(name), err)
		}
	}
	return nil
}

// trust reads what is trusted. Invalid entries are left out, and so are all of a role that has several.
func (c *compiler) trust(all []TrustedSessions) {
	c.trusted = map[key]*trustedRole{}
	for i, t := range all {
		k, path, _ := keyOf(t.Role)
		read, err := &trustedRole{role: t.Role, path: path, names: slices.Clone(t.Names)}, t.check()
		if _, twice := c.trusted[k]; err == nil && twice {
			read, err = nil, fmt.Errorf("%s is there twice", t.Role)
		}
		if err != nil {
			c.problems = append(c.problems, Problem{
				Field: fmt.Sprintf("trustedSessionNames[%d]", i), Saw: "is not right: " + err.Error(),
				Fix: "correct the authenticator's configuration; until then no session of this role is trusted", Unused: true,
			})
			read = nil
		}
		c.trusted[k] = read
	}
}

// sessions looks at an entry that names nodes after their sessions: whether what it names is one role whose sessions
// are trusted.
func (c *compiler) sessions(d draft) {
	t := c.trusted[c.rule.key] // an entry for many roles has a key that is nobody's
	switch {
	case t != nil && samePath(t.path, c.rule.path):
		c.rule.trusted = t
		return
	case t != nil:
		c.rule.hint = fmt.Sprintf("the authenticator's configuration trusts the sessions of %s: write the same role in both", t.role)
	default:
		c.rule.hint = unprovenHint
	}
	c.warn(sessionField(d), fault{"names nodes after their sessions, and each principal that may assume the role chooses the name: only instances' own sessions are let in, hybrid nodes and those of AWS's Fargate are refused", c.rule.hint})
}

// unprovenHint is what to do about nodes of which no session can be proven to be theirs.
const unprovenHint = "if a service names the sessions of this role, and not the principal that assumes it, trust them in the authenticator's configuration " +
	"(mapping.trustedSessionNames); otherwise let such nodes join with bootstrap tokens"

// sessionField is what says that nodes are named after their sessions.
func sessionField(d draft) string {
	if d.ofType {
		return "spec.type"
	}
	return d.fields.username
}

// samePath reports whether two paths may be of one role: "/" is also that of a role of which none is said, as STS says
// none.
func samePath(a, b string) bool { return a == "/" || b == "/" || a == b }

// unproven refuses a node's name to a session that is not proven to be an instance's, unless its name is trusted.
func (r *rule) unproven(p Principal) *refusal {
	no := refuse(RuleInstance, ownInstance, "the session %q is not proven to be an instance's, and %q is for instances", p.SessionName, r.username.source)
	if r.proof != proofSession || ofInstance(p.SessionName) {
		return no
	}
	if r.trusted == nil {
		no.fix += "; of hybrid nodes and those of AWS's Fargate nothing can be proven: " + r.hint
		return no
	}
	_, path, _ := keyOf(p.CanonicalARN)
	switch {
	case !samePath(r.trusted.path, path):
		return refuse(RuleTrustedName, "name this role there if a service names its sessions", "the authenticator's configuration trusts the sessions of %s, and this is one of %s", r.trusted.role, p.CanonicalARN)
	case !isNodeName(p.SessionName):
		return refuse(RuleTrustedName, nodeSession, "the name of the session, %q, cannot be a node's name", p.SessionName)
	case !slices.ContainsFunc(r.trusted.names, func(pattern string) bool { return glob(pattern, p.SessionName) }):
		return refuse(RuleTrustedName, "add it to mapping.trustedSessionNames there if a service sets it",
			"the authenticator's configuration trusts the sessions of %s that are named %s, and this one is named %q", r.trusted.role, strings.Join(r.trusted.names, ", "), p.SessionName)
	}
	return nil
}

// Trust is an entry in use by which sessions become nodes because their names are trusted.
type Trust struct {
	Source Source   `json:"source"`
	Entry  string   `json:"entry"`
	Role   string   `json:"role"`
	Names  []string `json:"names"`
}

// String is the trust as people read it where the entry is shown.
func (t Trust) String() string {
	return fmt.Sprintf("nodes are named after the sessions of %s: the authenticator's configuration trusts the names %s", t.Role, strings.Join(t.Names, ", "))
}

// Trusts are the entries by which sessions become nodes because their names are trusted.
func (t Table) Trusts() []Trust {
	var out []Trust
	for i := range t.rules {
		if r := &t.rules[i]; r.trusted != nil && r.problem == nil && !r.idle {
			out = append(out, Trust{Source: r.source, Entry: r.entry, Role: r.trusted.role.String(), Names: slices.Clone(r.trusted.names)})
		}
	}
	return out
}
