// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"container/list"
	"maps"
	"sync"
	"time"
)

// A requester may cause many Events at once, and after that as many as a person could read; all of them together as
// many as can be written. The recorder holds a thousand that are not written yet and drops what does not fit: a flood
// would take from others the only place where they read why they wait. Events over budget are told later.
const (
	eventsAtOnce = 100
	eventsPace   = time.Second

	allEventsAtOnce = 500
	allEventsPace   = 10 * time.Millisecond
	// manyBudgets is how many budgets are kept before full ones are deleted: a requester without a budget has a full
	// one.
	manyBudgets = 1000
)

// budget is how many Events each requester may still cause, and the Events (type word) that wait until the requester
// may cause another one. At most one Event waits for each request, and no Event for a request that is gone.
type budget struct {
	mu    sync.Mutex
	all   time.Time            // when everybody together may cause as many as at first again
	full  map[string]time.Time // the same of each requester
	swept time.Time            // when those that may were thrown away last
	lines map[string]*line     // by requester; a line is deleted when it is empty
}

// line holds the words of one requester in the order they were said.
type line struct {
	words *list.List // of word
	at    map[item]*list.Element
}

func newBudget() *budget { return &budget{full: map[string]time.Time{}, lines: map[string]*line{}} }

// offer returns whether a word is to be said at once. Otherwise it is held until next hands it out, and replaces what
// was held for its request before.
func (b *budget) offer(w word, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lines[w.about.requester]
	if l == nil && b.spend(w.about.requester, now) {
		return true
	}
	if l == nil {
		l = &line{words: list.New(), at: map[item]*list.Element{}}
		b.lines[w.about.requester] = l
	}
	if before := l.at[w.about]; before != nil {
		before.Value = w
	} else {
		l.at[w.about] = l.words.PushBack(w)
	}
	return false
}

// next returns the words that may be said by now: of each requester the oldest, and more in further rounds.
func (b *budget) next(now time.Time) (words []word) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for found := true; found; {
		found = false
		for requester, l := range b.lines {
			if !b.spend(requester, now) {
				continue
			}
			if w, ok := l.words.Front().Value.(word); ok {
				words = append(words, w)
				b.drop(w.about)
				found = true
			}
		}
	}
	return words
}

// forget throws away the word that is held about a request, if it is one that keep says no to.
func (b *budget) forget(about item, keep func(word) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.lines[about.requester]; l != nil && l.at[about] != nil {
		if w, ok := l.at[about].Value.(word); ok && !keep(w) {
			b.drop(about)
		}
	}
}

// drop expects that the lock is held.
func (b *budget) drop(about item) {
	l := b.lines[about.requester]
	l.words.Remove(l.at[about])
	delete(l.at, about)
	if l.words.Len() == 0 {
		delete(b.lines, about.requester)
	}
}

// spend takes one Event, false if there is none to take. The caller holds the lock.
func (b *budget) spend(requester string, now time.Time) bool {
	own, ownOK := take(b.full[requester], now, eventsAtOnce, eventsPace)
	all, allOK := take(b.all, now, allEventsAtOnce, allEventsPace)
	if !ownOK || !allOK {
		return false
	}
	b.full[requester], b.all = own, all
	if len(b.full) > manyBudgets && now.Sub(b.swept) >= eventsPace {
		b.swept = now
		maps.DeleteFunc(b.full, func(_ string, full time.Time) bool { return !full.After(now) })
	}
	return true
}

// take returns when a budget is full again after one more, and whether there was one.
func take(full, now time.Time, atOnce int, pace time.Duration) (time.Time, bool) {
	if full.Before(now) {
		full = now
	}
	full = full.Add(pace)
	return full, full.Sub(now) <= time.Duration(atOnce)*pace
}
