// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"crypto/sha256"
	"slices"
	"strings"
	"time"
)

// credential is a client certificate of a node that is good: its owner, and the credential that got it.
type credential struct {
	id, key        short // of the certificate, and of its public key
	machine, token string
	since, until   time.Time
}

// maxHeld is how many of a node are remembered: kubelets have two, and a node that asks for more pushes out its own.
const maxHeld = 8

// tokenPrefix begins the users that bootstrap tokens are.
const tokenPrefix = "system:bootstrap:"

// token is the bootstrap token that asked for the certificate, "" if none did.
func (e Entry) token() string {
	if !strings.HasPrefix(e.Requester, tokenPrefix) {
		return ""
	}
	return e.Requester
}

// useOf is what is kept forever of the use of a bootstrap token for a node, among the keys of the node.
func useOf(token, node string) short { return shorten(sha256.Sum256([]byte(token + " " + node))) }

// joins reports whether somebody else than the node asked for its client certificate: then a machine became the node,
// or became it anew.
func (e Entry) joins() bool {
	return isClient(e.Signer) && e.Node != "" && e.Requester != "" && e.Requester != nodePrefix+e.Node
}

// joinOf is what is kept forever of that somebody joined as a node, among the keys of the node.
func joinOf(node string) short { return shorten(sha256.Sum256([]byte("joined as " + node))) }

// credential is the certificate with this fingerprint, false if it is not on record.
func (l *last) credential(id short) (credential, bool) {
	if n := slices.IndexFunc(l.held, func(c credential) bool { return c.id == id }); n >= 0 {
		return l.held[n], true
	}
	return credential{}, false
}

// certificate is one of a node that is good, false if it is not on record. Nearly always it is one of the few that are
// remembered: the search is for nodes that ask for many and go on with an old one, as kubelets do that cannot write to
// their disks. It is called with the lock held.
func (r *Register) certificate(node string, id short) (credential, bool) {
	l := r.last[node]
	if c, ok := l.credential(id); ok {
		return c, true
	}
	for _, s := range append(slices.Clip(r.order), r.pending) {
		for _, e := range s.entries {
			if shorten(e.Certificate) == id && e.Node == node && isClient(e.Signer) {
				return credential{machine: e.Machine, since: e.NotBefore}, true
			}
		}
		n, _ := slices.BinarySearchFunc(s.retired, retired{key: id}, byKey)
		for ; n < len(s.retired) && s.retired[n].key == id; n++ {
			if g := r.groups.list[s.retired[n].group]; g.owner == node {
				return credential{machine: g.machine, since: g.last}, true
			}
		}
	}
	return credential{}, false
}

// renewal returns the machine of a certificate that a node got by itself, if no record names that machine. told reports
// whether id, the certificate that the node asked with, is known. If it is known and on record, the result is the
// machine of that certificate. Otherwise it is the node's last machine, but "" if id is known and the node was another
// machine before or somebody else asked for one of its certificates.
func (r *Register) renewal(node string, id short, told bool) string {
	c, ok := r.certificate(node, id)
	switch l := r.last[node]; {
	case told && ok:
		return c.machine
	case told && (l.replaced || !l.joined.IsZero()):
		return ""
	default:
		return l.machine
	}
}

// hold remembers a valid client certificate of a node and forgets the node's expired ones. Certificates that a
// bootstrap token got are remembered for longer.
func (l *last) hold(e Entry, now time.Time) {
	over := func(c credential) bool { return c.token == "" && now.After(c.until) }
	c := credential{shorten(e.Certificate), shorten(e.Key), e.Machine, e.token(), e.NotBefore, e.NotAfter}
	if over(c) {
		return
	}
	l.held = slices.DeleteFunc(l.held, func(old credential) bool { return old.key == c.key && old.id == c.id || over(old) })
	at, _ := slices.BinarySearchFunc(l.held, c, func(a, b credential) int { return a.since.Compare(b.since) })
	l.held = slices.Insert(l.held, at, c)
	for len(l.held) > maxHeld {
		at := l.spare()
		l.held = slices.Delete(l.held, at, at+1)
	}
}

// spare is the place of the one that is forgotten first. A certificate that a token got is kept longer: that the token
// was used is written down forever only when the certificate becomes a key. But the node uses the newest that it got by
// itself.
func (l *last) spare() int {
	renewed := func(c credential) bool { return c.token == "" }
	first := slices.IndexFunc(l.held, renewed)
	if first < 0 || !slices.ContainsFunc(l.held[first+1:], renewed) {
		first = slices.IndexFunc(l.held, func(c credential) bool { return !renewed(c) })
	}
	return first
}
