// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"
)

// State of a fact.
type State int

// The states. The zero value is Unknown: a fact that nobody gathered approves nothing.
const (
	Unknown State = iota // not looked up, or the lookup failed; Why says which
	Known
	Absent // known not to exist
)

// Fact is something gathered from outside.
type Fact[T any] struct {
	Value  T
	State  State
	Why    string    // for Unknown: what stood in the way
	Source string    // who says so
	At     time.Time // when it was so
	// Soon means that an Unknown fact is being looked up right now and a Change will follow: the wait is not reported.
	Soon bool
}

// Know makes a Known fact.
func Know[T any](v T, source string, at time.Time) Fact[T] {
	return Fact[T]{Value: v, State: Known, Source: source, At: at}
}

// None makes an Absent fact.
func None[T any](source string, at time.Time) Fact[T] {
	return Fact[T]{State: Absent, Source: source, At: at}
}

// DontKnow makes an Unknown fact.
func DontKnow[T any](source, why string) Fact[T] {
	return Fact[T]{Why: why, Source: source}
}

// why an unknown fact is unknown, in words.
func (f Fact[T]) why() string {
	if f.Why == "" {
		return "not looked up yet"
	}
	return f.Why
}

// Credential is a client certificate of a node.
type Credential struct {
	// Machine that it was issued to, "" if no record names it.
	Machine MachineRef
	// Since is when it became good, zero if it is on no record.
	Since time.Time
	// Replaced means that certificates of the node were issued to more than one machine.
	Replaced bool
	// Rejoined means that a requester other than the node got a client certificate of it after this one, or, if this
	// one is not on record, at any time.
	Rejoined bool
}

// Facts are all that Decide looks at beside the request. Ask says which of them a request needs.
type Facts struct {
	// TokenMachine is the machine that the requester's bootstrap token was made for.
	TokenMachine Fact[Machine]
	// Elsewhere is the name of the cluster that the requester's machine was launched for, if that is another one: see
	// Question.Asker. Absent if no source knows it as a machine of another cluster.
	Elsewhere Fact[string]
	// NodeMachine is the machine that may register the node of the common name.
	NodeMachine Fact[Machine]
	// Owners holds, for every name and address asked for (in text, as Ask gives it), the IDs of all machines whose own
	// it is. If it is nobody's own, those are owners that may have it by a range.
	Owners map[string]Fact[[]string]
	// Nodes reports, for every DNS name asked for that is not the node's own, whether a Node object of that name
	// exists.
	Nodes map[string]Fact[bool]
	// Node reports whether a Node object of the name exists.
	Node Fact[bool]
	// LastMachine is the machine that the last certificate of the node was issued to. Absent if none is on record.
	LastMachine Fact[MachineRef]
	// Credential is what is on record of the certificate that a node asks with.
	Credential Fact[Credential]
	// Serving is the certificate that the node's kubelet serves with.
	Serving Fact[Serving]
	// TokenSpent reports whether the node has joined by the requester's bootstrap token and holds a valid certificate
	// for another key: reuse of the token is refused then.
	TokenSpent Fact[bool]
	// Expired reports whether all client certificates of the node that are on record have expired. Absent if none is on
	// record.
	Expired Fact[bool]
	// KeyOwner is the node that the public key was certified for before. Absent if it never was. An owner that is not a
	// node has a colon in its name.
	KeyOwner Fact[string]
	// Access is the answer to the SubjectAccessReview.
	Access Fact[bool]
}

const defaultMaxFactAge = 2 * time.Minute

// fresh makes facts that are too old Unknown: a name or address may be another machine's by now.
func (f Facts) fresh(now time.Time, limit time.Duration) Facts {
	if limit <= 0 {
		limit = defaultMaxFactAge
	}
	f.TokenMachine = fresh(f.TokenMachine, now, limit)
	f.Elsewhere = fresh(f.Elsewhere, now, limit)
	f.NodeMachine = fresh(f.NodeMachine, now, limit)
	f.Node = fresh(f.Node, now, limit)
	f.LastMachine = fresh(f.LastMachine, now, limit)
	f.Credential = fresh(f.Credential, now, limit)
	f.Serving = fresh(f.Serving, now, limit)
	f.TokenSpent = fresh(f.TokenSpent, now, limit)
	f.Expired = fresh(f.Expired, now, limit)
	f.KeyOwner = fresh(f.KeyOwner, now, limit)
	f.Access = fresh(f.Access, now, limit)
	nodes := make(map[string]Fact[bool], len(f.Nodes))
	for k, n := range f.Nodes {
		nodes[k] = fresh(n, now, limit)
	}
	f.Nodes = nodes
	owners := make(map[string]Fact[[]string], len(f.Owners))
	for k, o := range f.Owners {
		owners[k] = fresh(o, now, limit)
	}
	f.Owners = owners
	return f
}

func fresh[T any](f Fact[T], now time.Time, limit time.Duration) Fact[T] {
	if age := now.Sub(f.At); f.State != Unknown && age > limit {
		return DontKnow[T](f.Source, fmt.Sprintf("the last answer of %s is %s old", f.Source, age.Round(time.Second)))
	}
	return f
}
