// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/policy"
)

// ledger remembers what the API server does not: since when a request is known, which facts it is judged by, whether
// they changed since, the last notice about it, and which ones are finished although the informer does not show it yet.
type ledger struct {
	mu       sync.Mutex
	entries  map[item]*entry
	interest map[string]map[item]bool
	finished map[types.UID]bool
}

type entry struct {
	uid      types.UID
	seen     time.Time
	approved time.Time // when we approved it
	keys     []string
	changed  bool // a fact that it was judged by has changed since
	said     string
	shown    bool // as finished, by the informer
	deleted  bool // by us
	doubtful bool // a write failed, and may have been made all the same
}

func newLedger() *ledger {
	return &ledger{entries: map[item]*entry{}, interest: map[string]map[item]bool{}, finished: map[types.UID]bool{}}
}

// observe notes when a request was first seen. A request that has the name of another that is gone begins anew.
func (l *ledger) observe(i item, uid types.UID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[i]
	if e == nil || e.uid != uid {
		if e != nil {
			l.forgetKeys(i, e)
			delete(l.finished, e.uid)
		}
		l.entries[i] = &entry{uid: uid, seen: now}
	}
}

// dependsOn notes which facts the request is judged by. It must be called before they are gathered: a change after that
// wakes the request up, so none is missed between gathering and waiting, or between gathering and writing.
func (l *ledger) dependsOn(i item, q policy.Question) {
	keys := make([]string, 0, 3+len(q.Names)+len(q.Nodes))
	if q.Machine != "" {
		keys = append(keys, "machine "+q.Machine)
	}
	if q.Asker != "" && q.Asker != q.Machine {
		keys = append(keys, "machine "+q.Asker)
	}
	if q.Node != "" {
		keys = append(keys, "node "+q.Node)
	}
	for _, n := range q.Names {
		keys = append(keys, "name "+n)
	}
	for _, n := range q.Nodes {
		keys = append(keys, "node "+n)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[i]
	if e == nil {
		return // it was deleted meanwhile
	}
	l.forgetKeys(i, e)
	e.keys, e.changed = keys, false
	for _, k := range keys {
		if l.interest[k] == nil {
			l.interest[k] = map[item]bool{}
		}
		l.interest[k][i] = true
	}
}

// factsChanged reports whether a fact that the request was judged by may be another one by now.
func (l *ledger) factsChanged(i item) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[i]
	return e != nil && e.changed
}

// affectedBy returns the requests that a change may matter to.
func (l *ledger) affectedBy(c facts.Change) map[item]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[item]bool{}
	add := func(items map[item]bool) {
		for i := range items {
			found[i] = true
			if e := l.entries[i]; e != nil {
				e.changed = true
			}
		}
	}
	if c.All {
		for _, items := range l.interest {
			add(items)
		}
		return found
	}
	for kind, names := range map[string][]string{"machine ": c.Machines, "node ": c.Nodes, "name ": c.Names} {
		for _, n := range names {
			add(l.interest[kind+n])
		}
	}
	return found
}

// isNewMessage reports whether something was not said about the request last.
func (l *ledger) isNewMessage(i item, said string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[i]
	if e == nil || e.said == said {
		return e == nil
	}
	e.said = said
	return true
}

// stopWaiting ends the waiting of a request.
func (l *ledger) stopWaiting(i item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[i]; e != nil {
		l.forgetKeys(i, e)
	}
}

// markApproved notes that we approved a request, and returns since when it was known.
func (l *ledger) markApproved(i item, now time.Time) (seen time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[i]
	if e == nil {
		return now
	}
	e.approved = now
	return e.seen
}

// markFinished notes that nothing more is to be done about an object, and returns since when it was known and when we
// approved it.
func (l *ledger) markFinished(i item, uid types.UID) (seen, approved time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[i]
	if e == nil || e.uid != uid {
		return seen, approved // it is gone: nobody will ask again
	}
	if !e.shown { // the informer may be quicker than the answer to what we wrote
		l.finished[uid] = true
	}
	l.forgetKeys(i, e)
	return e.seen, e.approved
}

// markStale notes that a write failed and may have been made all the same: the informer's object is not to be acted on.
func (l *ledger) markStale(i item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[i]; e != nil {
		e.doubtful = true
	}
}

// takeStale reports whether the request must be read anew, and clears the mark: the caller reads it.
func (l *ledger) takeStale(i item) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[i]
	if e == nil || !e.doubtful {
		return false
	}
	e.doubtful = false
	return true
}

// isFinished reports whether nothing more is to be done about an object, whatever the informer shows.
func (l *ledger) isFinished(uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.finished[uid]
}

// forgetFinished notes that the informer shows it, too: then there is nothing to remember any more.
func (l *ledger) forgetFinished(i item, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.finished, uid)
	if e := l.entries[i]; e != nil && e.uid == uid {
		l.forgetKeys(i, e)
		e.said, e.shown = "", true
	}
}

// markDeleted notes that we deleted an object.
func (l *ledger) markDeleted(i item, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[i]; e != nil && e.uid == uid {
		l.forgetKeys(i, e)
		e.deleted = true
	}
}

// finishedOrDeleted returns which object of a request we finished, or deleted, that the informer may not show so yet;
// "" if none.
func (l *ledger) finishedOrDeleted(i item) (finished, deleted types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[i]
	if e == nil {
		return "", ""
	}
	if l.finished[e.uid] {
		finished = e.uid
	}
	if e.deleted {
		deleted = e.uid
	}
	return finished, deleted
}

// remove forgets a request that is gone.
func (l *ledger) remove(i item, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.finished, uid)
	if e := l.entries[i]; e != nil && e.uid == uid {
		l.forgetKeys(i, e)
		delete(l.entries, i)
	}
}

// waiting counts the requests that are being judged or wait for a fact.
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
