// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"container/list"
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/internal/policy"
)

// Subject is what is looked up: a machine by one of the two.
type Subject struct{ Node, ID string }

// AnswersConfig is what Answers need.
type AnswersConfig struct {
	Name string // of the source
	// Most answers that are kept, and lookups that wait; 10,000 if 0.
	Most int
	// OnChange is called after each answer that somebody waits for, or that differs from the one before.
	OnChange func(Change)
	Now      func() time.Time
}

// Answers keeps what a source is told that must ask about each machine. It is the half of such a source that answers lookups: what
// is not known is put in a queue, from which the other half takes it, to Put an answer later. One thing is looked up once at a
// time, however many ask for it.
type Answers struct {
	config AnswersConfig
	ready  chan struct{} // holds a value while lookups wait

	mu      sync.Mutex
	entries map[Subject]*entry
	used    *list.List // of *entry, latest first
	waiting *list.List // of *entry, latest first
	owners  map[string]map[*entry]bool
}

// entry is one answer, or the lack of one.
type entry struct {
	subject  Subject
	fact     policy.Fact[policy.Machine]
	put      time.Time // when it was answered, zero if it never was
	until    time.Time // when it must be looked up again
	owed     bool      // somebody was told that a change will tell
	underWay bool
	used     *list.Element
	waiting  *list.Element // nil unless it is in the queue
}

// An answer that says no, or that nobody could tell, is good while it is looked up again, unless it is very old: it approves
// nothing, and who waits for another one need not be woken up in vain.
const oldNo = 90 * time.Second

// NewAnswers makes one.
func NewAnswers(c AnswersConfig) *Answers {
	if c.Most <= 0 {
		c.Most = 10_000
	}
	return &Answers{
		config: c, ready: make(chan struct{}, 1), entries: map[Subject]*entry{},
		used: list.New(), waiting: list.New(), owners: map[string]map[*entry]bool{},
	}
}

// Get answers at once, and has looked up what is not known.
func (a *Answers) Get(s Subject) policy.Fact[policy.Machine] {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.config.Now()
	e := a.entries[s]
	if e == nil {
		if !a.room() {
			return policy.DontKnow[policy.Machine](a.config.Name, "too many lookups are under way")
		}
		e = &entry{subject: s}
		e.used = a.used.PushFront(e)
		a.entries[s] = e
	}
	a.used.MoveToFront(e.used)
	if now.Before(e.until) {
		return e.fact
	}
	if e.waiting == nil && !e.underWay {
		e.waiting = a.waiting.PushFront(e)
		a.signal()
	}
	if e.put.IsZero() || e.fact.State == policy.Known || now.Sub(e.put) > oldNo {
		e.owed = true
		return policy.Fact[policy.Machine]{Source: a.config.Name, Why: "it is being looked up", Soon: true}
	}
	return e.fact
}

// Owners finds all machines that have a name or an address, among those whose answers are known.
func (a *Answers) Owners(name string) policy.Fact[[]policy.Machine] {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.config.Now()
	var found []policy.Machine
	at := now
	for e := range a.owners[name] {
		if !now.Before(e.until) || slices.ContainsFunc(found, func(m policy.Machine) bool { return m.ID == e.fact.Value.ID }) {
			continue
		}
		found = append(found, e.fact.Value)
		if e.fact.At.Before(at) {
			at = e.fact.At
		}
	}
	slices.SortFunc(found, func(a, b policy.Machine) int { return strings.Compare(a.ID, b.ID) })
	return policy.Know(found, a.config.Name, at)
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

// Take hands out what is to be looked up; each must be Put. What was asked for last comes first: when more is asked
// for than can be looked up, as when somebody floods it with names, whoever asks now is served, and not after all that.
func (a *Answers) Take(most int) []Subject {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []Subject
	for len(out) < most && a.waiting.Len() > 0 {
		e := entryOf(a.waiting.Front())
		a.dequeue(e)
		e.underWay = true
		out = append(out, e.subject)
	}
	if a.waiting.Len() > 0 {
		a.signal()
	}
	return out
}

// Put answers a lookup, for as long as given.
func (a *Answers) Put(s Subject, f policy.Fact[policy.Machine], keep time.Duration) {
	a.mu.Lock()
	e := a.entries[s]
	if e == nil {
		a.mu.Unlock()
		return
	}
	before, owed := e.fact, e.owed
	a.disown(e)
	e.fact, e.put, e.until = f, a.config.Now(), a.config.Now().Add(keep)
	e.owed, e.underWay = false, false
	if f.State == policy.Known {
		for _, n := range namesOf(f.Value) {
			if a.owners[n] == nil {
				a.owners[n] = map[*entry]bool{}
			}
			a.owners[n][e] = true
		}
	}
	a.mu.Unlock()
	if owed || before.State != f.State || !reflect.DeepEqual(before.Value, f.Value) {
		a.config.OnChange(changeOf(policy.Machine{ID: s.ID, NodeName: s.Node}, before.Value, f.Value))
	}
}

// room makes room for one entry. The one that was asked for longest ago goes, also out of the queue; who asked for it asks again.
func (a *Answers) room() bool {
	if len(a.entries) < a.config.Most {
		return true
	}
	for element := a.used.Back(); element != nil; element = element.Prev() {
		e := entryOf(element)
		if e.underWay {
			continue // there are few of these
		}
		a.disown(e)
		a.dequeue(e)
		a.used.Remove(element)
		delete(a.entries, e.subject)
		return true
	}
	return false
}

func (a *Answers) dequeue(e *entry) {
	if e.waiting != nil {
		a.waiting.Remove(e.waiting)
		e.waiting = nil
	}
}

// disown forgets which names the answer gave to a machine.
func (a *Answers) disown(e *entry) {
	if e.fact.State != policy.Known {
		return
	}
	for _, n := range namesOf(e.fact.Value) {
		delete(a.owners[n], e)
		if len(a.owners[n]) == 0 {
			delete(a.owners, n)
		}
	}
}

func (a *Answers) signal() {
	select {
	case a.ready <- struct{}{}:
	default:
	}
}

func entryOf(e *list.Element) *entry {
	found, _ := e.Value.(*entry) // nothing else is in these lists
	return found
}
