// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/facts/factstest"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

// fakeNodes are the nodes that exist.
type fakeNodes struct {
	mu       sync.Mutex
	there    map[string]bool
	onChange func(facts.Change)
}

func (f *fakeNodes) HasSynced() bool { return true }

func (f *fakeNodes) set(node string, there bool) {
	f.mu.Lock()
	if f.there == nil {
		f.there = map[string]bool{}
	}
	f.there[node] = there
	tell := f.onChange
	f.mu.Unlock()
	if tell != nil {
		tell(facts.Change{Nodes: []string{node}})
	}
}

func (f *fakeNodes) Exists(node string) policy.Fact[bool] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.there[node] {
		return policy.Know(true, "nodes", time.Now())
	}
	return policy.None[bool]("nodes", time.Now())
}

// fakeRegister records in memory, and is never flushed while it is stuck.
type fakeRegister struct {
	mu      sync.Mutex
	entries map[string]issued.Entry // by UID
	last    issued.Entry
	stuck   bool
	running atomic.Bool
	ended   func() // called when Run ends
}

func newFakeRegister() *fakeRegister { return &fakeRegister{entries: map[string]issued.Entry{}} }

func (f *fakeRegister) Run(ctx context.Context) {
	f.running.Store(true)
	defer f.running.Store(false)
	<-ctx.Done()
	if f.ended != nil {
		f.ended()
	}
}

func (f *fakeRegister) HasSynced() bool { return true }

func (f *fakeRegister) Add(e issued.Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.entries[e.UID]; !known { // as the real one: the watch may have been quicker
		f.entries[e.UID] = e
	}
	f.last = e
}

func (f *fakeRegister) Observe(csr *certificatesv1.CertificateSigningRequest) {
	f.mu.Lock()
	_, known := f.entries[string(csr.UID)]
	f.mu.Unlock()
	if e, err := issued.EntryOf(csr, MachineOf(csr)); err == nil && !known {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.entries[e.UID] = e
	}
}

// added is what Add was called with last.
func (f *fakeRegister) added() issued.Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

func (f *fakeRegister) KeyOwner(key pki.Fingerprint) policy.Fact[string] {
	for _, e := range f.List() {
		if e.Key == key {
			return policy.Know(e.Node, "register", time.Now())
		}
	}
	return policy.None[string]("register", time.Now())
}

func (f *fakeRegister) Expired(node string) policy.Fact[bool] {
	expired := policy.None[bool]("register", time.Now())
	for _, e := range f.List() {
		if e.Node == node && e.Signer == pki.SignerKubeletClient {
			expired = policy.Know(time.Now().After(e.NotAfter) && (expired.State == policy.Absent || expired.Value), "register", time.Now())
		}
	}
	return expired
}

func (f *fakeRegister) Credential(node string, id pki.Fingerprint) policy.Fact[policy.Credential] {
	var c policy.Credential
	first := ""
	for _, e := range f.List() {
		if e.Node != node || e.Signer != pki.SignerKubeletClient {
			continue
		}
		if e.Certificate == id {
			c.Machine = policy.MachineRef(e.Machine)
		}
		c.Replaced = c.Replaced || first != "" && first != e.Machine
		first = e.Machine
	}
	return policy.Know(c, "register", time.Now())
}

func (f *fakeRegister) TokenSpent(node, token string, key pki.Fingerprint) policy.Fact[bool] {
	used, other, spoke := false, false, false
	for _, e := range f.List() {
		spoke = spoke || e.Requester == nodeUserPrefix+node
		if e.Node == node && e.Signer == pki.SignerKubeletClient {
			used, other = used || e.Requester == token, other || e.Key != key
		}
	}
	return policy.Know(used && other && spoke, "register", time.Now())
}

func (f *fakeRegister) LastMachine(node string) policy.Fact[policy.MachineRef] {
	for _, e := range f.List() {
		if e.Node == node && e.Signer == pki.SignerKubeletClient && e.Machine != "" {
			return policy.Know(policy.MachineRef(e.Machine), "register", time.Now())
		}
	}
	return policy.None[policy.MachineRef]("register", time.Now())
}

func (f *fakeRegister) Flushed(string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.stuck
}

func (f *fakeRegister) stick(stuck bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stuck = stuck
}

// Stats says that what is stuck has been so for an hour.
func (f *fakeRegister) Stats() issued.Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stuck {
		return issued.Stats{Waiting: time.Hour}
	}
	return issued.Stats{}
}

func (f *fakeRegister) List() (all []issued.Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.entries {
		all = append(all, e)
	}
	return all
}

// entry is a serving certificate on record.
func (w *world) entry(uid, node string, notAfter time.Time) issued.Entry {
	return issued.Entry{UID: uid, Signer: pki.SignerKubeletServing, Node: node, NotAfter: notAfter}
}

// inventory is the fake one, as facts.Combined is.
type inventory struct{ *factstest.Inventory }

func (i inventory) Status() []facts.SourceStatus { return []facts.SourceStatus{i.Inventory.Status()} }
