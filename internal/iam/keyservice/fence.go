// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// fenceTime is how long the event of a change waits for answers from before it. An answer that has not left by then
// never leaves: its client does not read, and a revocation does not wait for that client.
const fenceTime = 250 * time.Millisecond

// fence keeps the order: no answer from before a change leaves after its event.
type fence struct {
	limit time.Duration
	mu    sync.Mutex
	all   map[*leaving]struct{}
}

// leaving is an answer, from before its question is looked up until it has left.
type leaving struct {
	control *http.ResponseController
	done    chan struct{}

	mu            sync.Mutex
	writing, late bool
}

func (f *fence) enter(control *http.ResponseController) *leaving {
	l := &leaving{control: control, done: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[l] = struct{}{}
	return l
}

func (f *fence) leave(l *leaving) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, l)
	close(l.done)
}

// write reports whether the answer may be written now, for a while.
func (l *leaving) write() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writing = !l.late
	_ = l.control.SetWriteDeadline(time.Now().Add(answerTime))
	return l.writing
}

// drop has the answer not leave any more. It reports whether somebody is writing it, which fails then and ends the
// connection.
func (l *leaving) drop() (writing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = true
	if l.writing {
		_ = l.control.SetWriteDeadline(time.Unix(1, 0))
	}
	return l.writing
}

// wait returns when no answer that is under way now can leave any more.
func (f *fence) wait() {
	f.mu.Lock()
	before := slices.Collect(maps.Keys(f.all))
	f.mu.Unlock()
	limit := time.NewTimer(f.limit)
	defer limit.Stop()
	for n, l := range before {
		select {
		case <-l.done:
			continue
		case <-limit.C:
		}
		for _, late := range before[n:] {
			if late.drop() {
				<-late.done
			}
		}
		return
	}
}
