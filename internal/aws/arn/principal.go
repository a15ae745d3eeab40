// SPDX-License-Identifier: Apache-2.0

package arn

import (
	"fmt"
	"strings"
)

// MaxName is how long the name of a role, a user or a session may be.
const MaxName = 64

// Limits of IAM and STS on names, in bytes: IAM API Reference, types Role, User and the parameters of AssumeRole and
// GetFederationToken.
const (
	maxPath        = 512
	minSession     = 2 // and at most MaxName
	maxFederated   = 32
	rolePrefix     = "role/"
	userPrefix     = "user/"
	assumedPrefix  = "assumed-role/"
	federatePrefix = "federated-user/"
)

// Canonical is the lasting name behind a: that of the role for a session of it. Users, roles, roots and federated users
// are their own; all else names nobody and is an error.
func (a ARN) Canonical() (ARN, error) {
	if role, _, ok := a.AssumedRole(); ok {
		return ARN{Partition: a.Partition, Service: "iam", Account: a.Account, Resource: rolePrefix + role}, nil
	}
	_, _, role := a.Role()
	_, _, user := a.User()
	if role || user || a.isRoot() || a.isFederated() {
		return a, nil
	}
	if name, ok := a.LongName(); ok {
		return ARN{}, fmt.Errorf("%s names nobody: its name has %d characters, and IAM's have at most %d", quote(a.String()), len(name), MaxName)
	}
	return ARN{}, fmt.Errorf("%s names nobody: a principal is an iam role/NAME, user/NAME or root, or an sts assumed-role/ROLE/SESSION or "+
		"federated-user/NAME, of an account of 12 digits and without region", quote(a.String()))
}

// Role takes the ARN of a role apart. The path begins and ends with a slash and is "/" if there is none.
func (a ARN) Role() (path, name string, ok bool) { return a.named("iam", rolePrefix) }

// User takes the ARN of a user apart, as Role does.
func (a ARN) User() (path, name string, ok bool) { return a.named("iam", userPrefix) }

// AssumedRole takes the ARN of a session of a role apart. STS leaves the path of the role out; if one is there, it is
// part of role.
func (a ARN) AssumedRole() (role, session string, ok bool) {
	path, session, ok := a.named("sts", assumedPrefix)
	if !ok || path == "/" || len(session) < minSession {
		return "", "", false
	}
	role = path[1 : len(path)-1]
	if _, _, ok := (ARN{Service: "iam", Account: a.Account, Resource: rolePrefix + role}).Role(); !ok {
		return "", "", false
	}
	return role, session, true
}

// LongName is the name of a role or user that cannot be, since IAM has none that long. Other malformed ARNs have none.
func (a ARN) LongName() (name string, ok bool) {
	if role, isSession := strings.CutPrefix(a.Resource, assumedPrefix); isSession && a.Service == "sts" {
		a.Service, a.Resource = "iam", rolePrefix+role[:max(0, strings.LastIndexByte(role, '/'))]
	}
	at := strings.LastIndexByte(a.Resource, '/') + 1
	if name = a.Resource[at:]; len(name) <= MaxName || !all(name, isNameCharacter) {
		return "", false
	}
	a.Resource = a.Resource[:at] + name[:MaxName] // would it be one, were it shorter?
	_, _, role := a.Role()
	_, _, user := a.User()
	if !role && !user {
		return "", false
	}
	return name, true
}

// WithoutPath is the ARN of a role or user as STS would write it, which never says the path; any other is itself.
func (a ARN) WithoutPath() ARN {
	for _, prefix := range []string{rolePrefix, userPrefix} {
		if _, name, ok := a.named("iam", prefix); ok {
			a.Resource = prefix + name
			return a
		}
	}
	return a
}

func (a ARN) isRoot() bool { return a.global("iam") && a.Resource == "root" }

func (a ARN) isFederated() bool {
	_, name, ok := a.named("sts", federatePrefix)
	return ok && len(name) >= minSession && len(name) <= maxFederated && a.Resource == federatePrefix+name
}

// global reports whether a belongs to an account's part of a service that knows no regions.
func (a ARN) global(service string) bool {
	return a.Service == service && a.Region == "" && IsAccount(a.Account)
}

// named takes a resource PREFIX[PATH/]NAME apart.
func (a ARN) named(service, prefix string) (path, name string, ok bool) {
	if !a.global(service) || !strings.HasPrefix(a.Resource, prefix) {
		return "", "", false
	}
	rest := a.Resource[len(prefix)-1:] // with the slash in front
	cut := strings.LastIndexByte(rest, '/') + 1
	path, name = rest[:cut], rest[cut:]
	if !isPath(path) || !isName(name) {
		return "", "", false
	}
	return path, name, true
}

// isPath reports whether p is an IAM path: "/", or something between two slashes, which may have slashes side by side
// (IAM API Reference, CreateUser, Path).
func isPath(p string) bool {
	return len(p) <= maxPath && strings.HasPrefix(p, "/") && strings.HasSuffix(p, "/") && p != "//" && all(p, isGraphic)
}

func isName(s string) bool { return s != "" && len(s) <= MaxName && all(s, isNameCharacter) }

func isNameCharacter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || strings.IndexByte("_+=,.@-", c) >= 0
}
