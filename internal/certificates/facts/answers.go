// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/internal/certificates/policy"
)

// Subject is what is looked up: a machine by its node or its ID, or the owners of a name or an address.
type Subject struct{ Node, ID, Name string }

// Answer is what a lookup found, for as long as it is to be kept: one machine at most, or all owners of a name.
type Answer struct {
	Subject Subject
	Fact    policy.Fact[[]policy.Machine]
	Keep    time.Duration
}

// answerOf is an answer about one machine.
func answerOf(s Subject, f policy.Fact[policy.Machine], keep time.Duration) Answer {
	all := policy.Fact[[]policy.Machine]{State: f.State, Why: f.Why, Source: f.Source, At: f.At}
	if f.State == policy.Known {
		all.Value = []policy.Machine{f.Value}
	}
	return Answer{s, all, keep}
}

// AnswersConfig is what Answers need.
type AnswersConfig struct {
	Name string // of the source
	// Most answers that are kept, and lookups that wait, of each of two kinds; 10,000 if 0.
	Most int
	// OnChange is called after answers that a caller waits for, or that differ from the ones before.
	OnChange func(Change)
	Now      func() time.Time
}

// Answers is the cache of a source that must ask about each machine. It answers lookups: a subject without an answer is
// put into a queue, from which the other half of the source takes it, to Put an answer later. A subject is looked up
// once at a time, however many callers ask for it.
//
// There are two queues, which take turns and do not push each other's answers out: any requester of a certificate
// causes lookups of owners, of as many names as fit into a request, and these must not delay lookups of machines.
type Answers struct {
	config AnswersConfig
	ready  chan struct{} // holds a value while lookups wait

	mu       sync.Mutex
	entries  map[Subject]*entry
	machines queue // and the names that they have
	names    queue // of which nobody knows yet whose they are
	// seen holds the answers about machines by the names and addresses in them.
	seen map[string]map[*entry]bool
}

// An answer that says no, or that failed, is good while it is looked up again, unless it is very old: it approves
// nothing, and a caller that waits for another one need not be woken up in vain. That a name has no owner is different:
// it approves.
const oldNo = 90 * time.Second

// NewAnswers makes one.
func NewAnswers(c AnswersConfig) *Answers {
	if c.Most <= 0 {
		c.Most = 10_000
	}
	return &Answers{
		config: c, ready: make(chan struct{}, 1), entries: map[Subject]*entry{},
		machines: newQueue(), names: newQueue(), seen: map[string]map[*entry]bool{},
	}
}

// Get answers at once about one machine, and has looked up what is not known.
func (a *Answers) Get(s Subject) policy.Fact[policy.Machine] {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.get(s)
	f := policy.Fact[policy.Machine]{State: found.State, Why: found.Why, Source: found.Source, At: found.At, Soon: found.Soon}
	if len(found.Value) > 0 {
		f.Value = found.Value[0]
	}
	return f
}

// Owners finds all machines that have a name or an address. It includes machines that another still-valid answer lists.
func (a *Answers) Owners(name string) policy.Fact[[]policy.Machine] {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.get(Subject{Name: name})
	if f.State != policy.Known {
		return f
	}
	seen := a.owners(name)
	if seen.At.Before(f.At) {
		f.At = seen.At
	}
	f.Value = append(slices.Clone(f.Value), slices.DeleteFunc(seen.Value, func(m policy.Machine) bool { return hasID(f.Value, m.ID) })...)
	sortByID(f.Value)
	return f
}

// Seen finds the machines that have a name or an address among those that were looked up lately. Nothing is looked up.
func (a *Answers) Seen(name string) policy.Fact[[]policy.Machine] {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.owners(name)
}

// Wait returns when there is something to look up, or false when ctx is done.
func (a *Answers) Wait(ctx context.Context) bool {
	select {
	case <-a.ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// Take hands out what is to be looked up, of both queues in turns; each must be Put. The last request comes first: when
// more is asked for than can be looked up, as in a flood of names, the newest request is served, and not after all
// that.
func (a *Answers) Take(most int) []Subject {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []Subject
	turn, next := &a.machines, &a.names
	for len(out) < most {
		if turn.waiting.Len() == 0 {
			turn, next = next, turn
		}
		e := turn.first()
		if e == nil {
			break
		}
		e.underWay = true
		out = append(out, e.subject)
		turn, next = next, turn
	}
	if a.machines.waiting.Len()+a.names.waiting.Len() > 0 {
		a.signal()
	}
	return out
}

// Put answers lookups. Answers that were found together are told by one change, so that a caller that waits for several
// of the answers finds all of them.
func (a *Answers) Put(answers ...Answer) {
	var all Change
	tell := false
	a.mu.Lock()
	for _, answer := range answers {
		if c, news := a.put(answer); news {
			all, tell = all.and(c), true
		}
	}
	a.mu.Unlock()
	if tell {
		a.config.OnChange(all.sorted())
	}
}

// get answers from what is known, and queues what is not. The caller holds the lock, as for all below.
func (a *Answers) get(s Subject) policy.Fact[[]policy.Machine] {
	e := a.entry(s)
	if e == nil {
		return policy.DontKnow[[]policy.Machine](a.config.Name, "too many lookups are under way")
	}
	now := a.config.Now()
	if now.Before(e.until) {
		return e.fact
	}
	if !e.underWay {
		e.queue.ask(e)
		a.signal()
	}
	if e.put.IsZero() || e.fact.State == policy.Known || now.Sub(e.put) > oldNo {
		e.owed = true
		return policy.Fact[[]policy.Machine]{Source: a.config.Name, Why: "it is being looked up", Soon: true}
	}
	return e.fact
}

// entry is that of a subject, or nil if there is no room for it.
func (a *Answers) entry(s Subject) *entry {
	e, q := a.entries[s], a.queueFor(s)
	switch {
	case e == nil:
		if !a.room(q) {
			return nil
		}
		e = &entry{subject: s}
		a.entries[s] = e
		q.add(e)
	case e.queue != q && q == &a.machines && a.room(q):
		e.moveTo(q)
	default:
		e.queue.used.MoveToFront(e.used)
	}
	return e
}

// queueFor is the one that a subject belongs into: names that machines are known to have are as few as they are.
func (a *Answers) queueFor(s Subject) *queue {
	if s.Name == "" || len(a.seen[s.Name]) > 0 || a.entries[Subject{Node: s.Name}] != nil {
		return &a.machines
	}
	return &a.names
}

// owners are the machines in good answers that have a name or an address.
func (a *Answers) owners(name string) policy.Fact[[]policy.Machine] {
	now := a.config.Now()
	var found []policy.Machine
	at := now
	for e := range a.seen[name] {
		m := e.fact.Value[0] // nothing else is in there
		if !now.Before(e.until) || hasID(found, m.ID) {
			continue
		}
		found = append(found, m)
		if e.fact.At.Before(at) {
			at = e.fact.At
		}
	}
	sortByID(found)
	return policy.Know(found, a.config.Name, at)
}

// put answers one lookup. It returns what changed by that, and whether anybody must be told.
func (a *Answers) put(answer Answer) (c Change, tell bool) {
	e := a.entries[answer.Subject]
	if e == nil {
		return Change{}, false
	}
	before, owed := e.fact, e.owed
	a.forget(e)
	e.fact, e.put = answer.Fact, a.config.Now()
	e.until, e.owed, e.underWay = e.put.Add(answer.Keep), false, false
	for _, n := range e.names() {
		if a.seen[n] == nil {
			a.seen[n] = map[*entry]bool{}
		}
		a.seen[n][e] = true
	}
	if !owed && same(before, e.fact) {
		return Change{}, false
	}
	if e.subject.Name != "" { // its owner is as it was before
		return Change{Names: []string{e.subject.Name}}, true
	}
	about := []policy.Machine{{ID: e.subject.ID, NodeName: e.subject.Node}}
	return ChangeOf(slices.Concat(about, before.Value, e.fact.Value)...), true
}

// room makes room for one entry. The one that was asked for longest ago goes, also out of the queue; its requester asks
// again.
func (a *Answers) room(q *queue) bool {
	if q.used.Len() < a.config.Most {
		return true
	}
	for element := q.used.Back(); element != nil; element = element.Prev() {
		e := entryOf(element)
		if e.underWay {
			continue // there are few of these
		}
		a.forget(e)
		q.remove(e)
		delete(a.entries, e.subject)
		return true
	}
	return false
}

// forget forgets which names the answer gave to a machine.
func (a *Answers) forget(e *entry) {
	for _, n := range e.names() {
		delete(a.seen[n], e)
		if len(a.seen[n]) == 0 {
			delete(a.seen, n)
		}
	}
}

func (a *Answers) signal() {
	select {
	case a.ready <- struct{}{}:
	default:
	}
}

func hasID(machines []policy.Machine, id string) bool {
	return slices.ContainsFunc(machines, func(m policy.Machine) bool { return m.ID == id })
}

func sortByID(machines []policy.Machine) {
	slices.SortFunc(machines, func(a, b policy.Machine) int { return strings.Compare(a.ID, b.ID) })
}
