// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"fmt"
	"slices"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

const source = "register of issued certificates"

// Register is the memory of what was issued. It is safe for use by several goroutines.
type Register struct {
	config Config
	watch  outage
	wake   chan struct{} // something is pending
	listed chan struct{} // closed when the segments have been read
	once   sync.Once
	tell   sync.Mutex // one call of OnChange at a time

	mu       sync.RWMutex
	synced   bool   // segments and requests have been read
	trouble  string // why they have not
	segments map[string]*segment
	order    []*segment   // the same, in the order in which they were begun
	taken    map[int]bool // numbers whose ConfigMaps are not ours
	begun    bool         // a segment was, since somebody asked
	pending  *segment
	since    time.Time // when the oldest of pending came
	full     bool      // more is pending than may be
	failure  error     // of the last write
	doubtful bool      // see cleared
	groups   groups
	names    map[string]string // signers, issuers, nodes and machines, each kept once
	last     map[string]last   // by node
}

// last is what is known of a node: of the machine that its newest certificate went to, and of its client certificates.
type last struct {
	machine  string // "" if nobody knew
	at       time.Time
	known    []string     // machines that it was, one of each source
	replaced bool         // it was another machine before
	client   bool         // there is a client certificate on record
	until    time.Time    // when the last client certificate ends
	joined   time.Time    // when the newest client certificate began that somebody else than the node asked for
	spoke    time.Time    // when the newest certificate began that the node asked for by itself
	held     []credential // oldest first
}

// New makes a Register. It knows nothing before Run.
func New(c Config) (*Register, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	return &Register{
		config: c, watch: outage{now: c.Now}, wake: make(chan struct{}, 1), listed: make(chan struct{}),
		segments: map[string]*segment{}, taken: map[int]bool{}, pending: newSegment(),
		groups: groups{ids: map[[2]string]uint32{}}, names: map[string]string{}, last: map[string]last{},
	}, nil
}

// HasSynced reports whether everything on record has been read. Before that all answers are Unknown.
func (r *Register) HasSynced() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.synced
}

// Add records a certificate. Answers count it at once; it is written within FlushEvery.
func (r *Register) Add(e Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(e)
}

func (r *Register) add(e Entry) {
	e = e.normal()
	if r.hasUID(e.UID, nil) {
		return
	}
	r.pend(func() { r.pending.add(r.own(e)) })
}

// pend changes what is pending and wakes up the writer.
func (r *Register) pend(change func()) {
	if r.pending.len() == 0 {
		r.since = r.config.Now()
	}
	change()
	switch over := len(r.pending.entries) > r.config.MaxPending; {
	case over && r.config.ReadOnly: // nothing will ever be written: the keys are enough
		r.retireEntries(r.pending, func(Entry) bool { return true })
	case over:
		r.full = true
	}
	r.awake()
}

func (r *Register) awake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Observe records the certificate of a request that was issued, unless it is on record. It costs little to call it
// again.
func (r *Register) Observe(csr *certificatesv1.CertificateSigningRequest) {
	if len(csr.Status.Certificate) == 0 || !slices.Contains(r.config.Signers, csr.Spec.SignerName) {
		return
	}
	select {
	case <-r.listed: // before that nobody knows whether it is on record; Run looks at all requests after that
	default:
		return
	}
	r.mu.RLock()
	known := r.hasUID(string(csr.UID), nil)
	r.mu.RUnlock()
	if known {
		return
	}
	e, err := EntryOf(csr, r.config.MachineOf(csr))
	if err != nil {
		r.config.Logger.Warn("issued certificate not recorded", "csr", csr.Name, "signer", csr.Spec.SignerName, "error", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.config.Now().After(e.NotAfter) && r.isRetired(shorten(e.Key), e.owner(), nil) {
		return // all that is left to be recorded of it is
	}
	if e.Machine == "" && e.Node != "" && csr.Spec.Username == nodePrefix+e.Node {
		id, told := policy.CredentialOf(csr)
		e.Machine = r.renewal(e.Node, shorten(id), told)
	}
	r.add(e)
}

// Flushed reports whether nothing is left to be written for the request with this UID. It is for requests that Add or
// Observe was called for: of others nothing is to be written.
func (r *Register) Flushed(uid string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.synced && !r.pending.uids[uid]
}

// KeyOwner returns the node that a public key was certified for. Owners that are not nodes have a colon in their name.
func (r *Register) KeyOwner(key pki.Fingerprint) policy.Fact[string] {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.synced {
		return unread[string](r)
	}
	at := r.watch.at()
	if owner := r.owner(shorten(key)); owner != "" {
		return policy.Know(owner, source, at)
	}
	if why := r.doubt(); why != "" {
		return policy.DontKnow[string](source, why)
	}
	return policy.None[string](source, at)
}

// LastMachine returns the machine that the last certificate of a node was issued to.
func (r *Register) LastMachine(node string) policy.Fact[policy.MachineRef] {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.synced {
		return unread[policy.MachineRef](r)
	}
	if why := r.doubt(); why != "" { // the machine on record may not have been the last one
		return policy.DontKnow[policy.MachineRef](source, why)
	}
	if l := r.last[node]; l.machine != "" {
		return policy.Know(policy.MachineRef(l.machine), source, r.watch.at())
	}
	return policy.None[policy.MachineRef](source, r.watch.at())
}

// Expired reports whether all client certificates of a node that are kept whole have expired. Valid certificates are
// kept whole, unless the node asked for more than maxEntries later ones: then the node has only hidden its own
// certificates, to its own loss.
func (r *Register) Expired(node string) policy.Fact[bool] {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.synced {
		return unread[bool](r)
	}
	if why := r.doubt(); why != "" { // there may be another that is good
		return policy.DontKnow[bool](source, why)
	}
	if l := r.last[node]; l.client {
		return policy.Know(r.config.Now().After(l.until), source, r.watch.at())
	}
	return policy.None[bool](source, r.watch.at())
}

// Credential returns what is on record about the client certificate of a requesting node.
func (r *Register) Credential(node string, id pki.Fingerprint) policy.Fact[policy.Credential] {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.synced {
		return unread[policy.Credential](r)
	}
	l := r.last[node]
	if c, ok := r.certificate(node, shorten(id)); ok {
		return policy.Know(policy.Credential{Machine: policy.MachineRef(c.machine), Since: c.since, Replaced: l.replaced, Rejoined: c.since.Before(l.joined)}, source, r.watch.at())
	}
	if why := r.doubt(); why != "" {
		return policy.DontKnow[policy.Credential](source, why)
	}
	return policy.Know(policy.Credential{Replaced: l.replaced, Rejoined: !l.joined.IsZero()}, source, r.watch.at())
}

// TokenSpent reports whether a bootstrap token has got a node a certificate that the node has used, while one for
// another key than this is good. Until it was used, a repeated request may come from a kubelet that never got it: it
// makes a new key each time.
func (r *Register) TokenSpent(node, token string, key pki.Fingerprint) policy.Fact[bool] {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.synced {
		return unread[bool](r)
	}
	now, l := r.config.Now(), r.last[node]
	used, other := r.isRetired(useOf(token, node), node, nil), false
	var since time.Time
	for _, c := range l.held {
		if c.token == token {
			used = true
			since = c.since // they are in order
		}
		other = other || c.key != shorten(key) && !now.After(c.until)
	}
	if used && other && !l.spoke.Before(since) {
		return policy.Know(true, source, r.watch.at())
	}
	if why := r.doubt(); why != "" {
		return policy.DontKnow[bool](source, why)
	}
	return policy.Know(false, source, r.watch.at())
}

func unread[T any](r *Register) policy.Fact[T] {
	f := policy.DontKnow[T](source, "it has not been read yet")
	if f.Soon = r.trouble == ""; !f.Soon {
		f.Why += ": " + r.trouble
	}
	return f
}

// maxWaiting is how long a certificate may wait to be recorded before nothing new is vouched for. Until then a crash
// loses nothing: the request holds the certificate, and upstream's cleaner leaves it for an hour after its approval
// (pkg/controller/certificates/cleaner/cleaner.go).
const maxWaiting = 30 * time.Minute

// waiting is how long the oldest of what is pending has been.
func (r *Register) waiting() time.Duration {
	if r.pending.len() == 0 || r.config.ReadOnly {
		return 0
	}
	return r.config.Now().Sub(r.since)
}

// doubt tells why what is not on record may have been issued all the same.
func (r *Register) doubt() string {
	if r.full {
		why := fmt.Sprintf("%d certificates have not been recorded", len(r.pending.entries))
		if r.failure != nil {
			why += ": " + r.failure.Error()
		}
		return why
	}
	if waiting := r.waiting(); waiting > maxWaiting {
		return fmt.Sprintf("certificates issued %s ago have not been recorded: %v", waiting.Round(time.Second), r.failure)
	}
	for _, s := range r.order {
		if s.lost {
			return fmt.Sprintf("ConfigMap %s is damaged: repair it, or delete it to accept the loss (%s)", s.name, s.damage[0])
		}
	}
	return ""
}

// cleared reports whether there was doubt when it was called last, and is none any more.
func (r *Register) cleared() bool {
	was := r.doubtful
	r.doubtful = r.doubt() != ""
	return was && !r.doubtful
}

func (r *Register) owner(k short) string {
	for _, s := range r.order {
		if o := s.owner(k, &r.groups); o != "" {
			return o
		}
	}
	return r.pending.owner(k, &r.groups)
}

// List returns the certificates that have not expired, oldest first.
func (r *Register) List() []Entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := slices.Clone(r.pending.entries)
	for _, s := range r.segments {
		all = append(all, s.entries...)
	}
	now := r.config.Now()
	return sorted(slices.DeleteFunc(all, func(e Entry) bool { return now.After(e.NotAfter) }))
}

// Stats are figures about a Register.
type Stats struct {
	// Certificates that are kept whole, Keys of which only the owner is.
	Certificates, Keys int
	Segments, Damaged  int
	// Pending entries and keys, and for how long the oldest of them has been waiting to be written.
	Pending int
	Waiting time.Duration
}

// Stats counts.
func (r *Register) Stats() Stats {
	r.mu.RLock()
	defer r.mu.RUnlock()
	s := Stats{Segments: len(r.segments), Waiting: r.waiting()}
	if !r.config.ReadOnly {
		s.Pending = r.pending.len()
	}
	for _, x := range append(slices.Clip(r.order), r.pending) {
		s.Certificates += len(x.entries)
		s.Keys += len(x.retired)
		if x.damage != nil {
			s.Damaged++
		}
	}
	return s
}

func (r *Register) notify(c facts.Change) {
	if !c.All && len(c.Nodes) == 0 {
		return
	}
	r.tell.Lock()
	defer r.tell.Unlock()
	r.config.OnChange(c)
}
