// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// lineages know which requests were superseded: of each lineage the newest few live, whatever became of them. Adding
// one tells at once which other it supersedes, so a flood costs each of its requests one look and not a search.
type lineages struct {
	keep int

	mu      sync.Mutex
	members map[string][]member // of each lineage, oldest first
	of      map[types.UID]string
}

// member is a request in its lineage.
type member struct {
	item    item
	uid     types.UID
	created int64 // in whole seconds, as the API server tells it
	open    bool  // nobody had decided about it when it was first seen
	version uint64
}

func newLineages(keep int) *lineages {
	return &lineages{keep: keep, members: map[string][]member{}, of: map[types.UID]string{}}
}

// older orders requests by creation. Of those created within one second, a request that was undecided when first seen
// is the newer, and then one that was written later: the version of a new request is that of its creation.
func older(a, b member) int {
	open := func(m member) int {
		if m.open {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(open(a), open(b)), cmp.Compare(a.version, b.version), cmp.Compare(a.item.name, b.item.name))
}

// see puts a request into its lineage, or another one than before, and returns which request that supersedes, if any.
func (l *lineages) see(h *held) (superseded item, ok bool) {
	if l.keep < 0 {
		return item{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before, known := l.of[h.uid]
	if before == h.lineage {
		return item{}, false
	}
	m := member{h.item, h.uid, h.created, !h.finished, number(h.version)}
	if known {
		m = l.drop(before, h.uid)
	}
	return l.put(m, h.lineage)
}

// move puts a request into another lineage, if it is in one.
func (l *lineages) move(uid types.UID, lineage string) (superseded item, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, known := l.of[uid]
	if !known || before == lineage {
		return item{}, false
	}
	return l.put(l.drop(before, uid), lineage)
}

// put expects that the lock is held.
func (l *lineages) put(m member, lineage string) (superseded item, ok bool) {
	if lineage == "" {
		return item{}, false
	}
	l.of[m.uid] = lineage
	all := l.members[lineage]
	at, _ := slices.BinarySearchFunc(all, m, older)
	all = slices.Insert(all, at, m)
	l.members[lineage] = all
	// A request older than the newest few was superseded before, except the one that has just left them, or is the new
	// one itself.
	if border := len(all) - l.keep - 1; border >= 0 {
		return all[min(at, border)].item, true
	}
	return item{}, false
}

// forget takes out a request that is gone.
func (l *lineages) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lineage, ok := l.of[uid]; ok {
		l.drop(lineage, uid)
	}
}

// drop expects that the lock is held.
func (l *lineages) drop(lineage string, uid types.UID) (m member) {
	all := l.members[lineage]
	if at := slices.IndexFunc(all, func(m member) bool { return m.uid == uid }); at >= 0 {
		m = all[at]
		all = slices.Delete(all, at, at+1)
	}
	if len(all) == 0 {
		delete(l.members, lineage)
	} else {
		l.members[lineage] = all
	}
	delete(l.of, uid)
	return m
}

// superseded reports whether enough newer requests of the same lineage live.
func (l *lineages) superseded(h *held) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.members[l.of[h.uid]]
	if l.keep < 0 || len(all) <= l.keep {
		return false
	}
	// The newest few are at the end: to look at them costs the same however many others there are.
	return !slices.ContainsFunc(all[len(all)-l.keep:], func(m member) bool { return m.uid == h.uid })
}
