// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/internal/facts"
	"muster.dev/muster/internal/policy"
)

// ledger remembers what the API server does not: since when a request is known, which facts it waits for, what was said about
// it last, and which ones are finished although the informer does not show it yet.
type ledger struct {
	mu       sync.Mutex
	entries  map[item]*entry
	interest map[string]map[item]bool
	finished map[types.UID]bool
}

type entry struct {
	seen time.Time
	keys []string
	said string
}

func newLedger() *ledger {
	return &ledger{entries: map[item]*entry{}, interest: map[string]map[item]bool{}, finished: map[types.UID]bool{}}
}

// see notes when a request was first seen.
func (l *ledger) see(i item, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries[i] == nil {
		l.entries[i] = &entry{seen: now}
	}
}

// expect notes which facts the request is judged by. It must be called before they are gathered: a change after that wakes the
// request up, so none is missed between gathering and waiting.
func (l *ledger) expect(i item, q policy.Question) {
	var keys []string
	if q.Machine != "" {
		keys = append(keys, "machine "+q.Machine)
	}
	if q.Node != "" {
		keys = append(keys, "node "+q.Node)
	}
	for _, n := range q.Names {
		keys = append(keys, "name "+n)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[i]
	if e == nil {
		return // it was deleted meanwhile
	}
	l.forgetKeys(i, e)
	e.keys = keys
	for _, k := range keys {
		if l.interest[k] == nil {
			l.interest[k] = map[item]bool{}
		}
		l.interest[k][i] = true
	}
}

// concerned returns the requests that a change may matter to.
func (l *ledger) concerned(c facts.Change) map[item]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[item]bool{}
	add := func(kind string, names []string) {
		for _, n := range names {
			for i := range l.interest[kind+n] {
				found[i] = true
			}
		}
	}
	if c.All {
		for _, items := range l.interest {
			for i := range items {
				found[i] = true
			}
		}
		return found
	}
	add("machine ", c.Machines)
	add("node ", c.Nodes)
	add("name ", c.Names)
	return found
}

// news tells whether something was not said about the request last.
func (l *ledger) news(i item, said string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[i]
	if e == nil || e.said == said {
		return e == nil
	}
	e.said = said
	return true
}

// settle ends the waiting of a request.
func (l *ledger) settle(i item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[i]; e != nil {
		l.forgetKeys(i, e)
	}
}

// finish notes that nothing more is to be done about an object, and returns since when it was known.
func (l *ledger) finish(i item, uid types.UID) (seen time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finished[uid] = true
	if e := l.entries[i]; e != nil {
		l.forgetKeys(i, e)
		return e.seen
	}
	return time.Time{}
}

// isFinished is asked with whether the informer shows it, too: then there is nothing to remember any more.
func (l *ledger) isFinished(uid types.UID, shown bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if shown {
		delete(l.finished, uid)
		return true
	}
	return l.finished[uid]
}

// remove forgets a request that is gone.
func (l *ledger) remove(i item, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.finished, uid)
	if e := l.entries[i]; e != nil {
		l.forgetKeys(i, e)
		delete(l.entries, i)
	}
}

func (l *ledger) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, e := range l.entries {
		if len(e.keys) > 0 {
			n++
		}
	}
	return n
}

func (l *ledger) forgetKeys(i item, e *entry) {
	for _, k := range e.keys {
		delete(l.interest[k], i)
		if len(l.interest[k]) == 0 {
			delete(l.interest, k)
		}
	}
	e.keys = nil
}
