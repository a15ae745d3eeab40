// SPDX-License-Identifier: Apache-2.0

package tokenverify

import (
	"context"
	"fmt"
	"sync"
	"time"

	"muster.dev/muster/internal/platform/lru"
)

// GateConfig bounds how many questions are asked at once.
type GateConfig struct {
	Known   int // at once, by access keys that are let in; 48 if 0
	Unknown int // at once, by others; 16 if 0. A quarter of that, in addition, where nobody ever answered.
	PerKey  int // at once, by one access key; 4 if 0
	Queue   int // waiting in each of the lanes; 256 if 0
	// QueuePerKey is how many of one key may wait; 16 if 0.
	QueuePerKey int
	Wait        time.Duration // at most; 2 s if 0
	Remember    int           // known keys; 8192 if 0
	// Busy is called for each question that is not asked, if not nil.
	Busy func(known bool)
}

// Gate is in front of the verifier. Access keys that are let in have a lane of their own, so that a flood of tokens of
// unknown keys holds up itself alone. Others have two: where nobody ever answered, questions take long and there is
// seldom anybody. Within a lane the keys take turns.
type Gate struct {
	config GateConfig
	mu     sync.Mutex
	known  *lru.Map[string, struct{}]
	lanes  [3]lane
}

// The lanes.
const (
	knownLane = iota
	unknownLane
	nowhereLane
)

type lane struct {
	free    int
	waiting int
	lines   map[string]*line
	turns   []*line // lines in which somebody waits; the first is next
}

// line are the questions of one access key.
type line struct {
	key     string
	busy    int
	waiting []chan struct{} // closed when it is their turn
}

// NewGate makes a gate.
func NewGate(c GateConfig) *Gate {
	for field, value := range map[*int]int{&c.Known: 48, &c.Unknown: 16, &c.PerKey: 4, &c.Queue: 256, &c.QueuePerKey: 16, &c.Remember: 8192} {
		if *field <= 0 {
			*field = value
		}
	}
	if c.Wait <= 0 {
		c.Wait = 2 * time.Second
	}
	g := &Gate{config: c, known: lru.New[string, struct{}](c.Remember)}
	for which, free := range map[int]int{knownLane: c.Known, unknownLane: c.Unknown, nowhereLane: max(1, c.Unknown/4)} {
		g.lanes[which] = lane{free: free, lines: map[string]*line{}}
	}
	return g
}

// Admit makes an access key a known one.
func (g *Gate) Admit(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known.Put(key, struct{}{})
}

// Admitted reports whether an access key is a known one.
func (g *Gate) Admitted(key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, known := g.known.Get(key)
	return known
}

// Enter waits for a turn; answered reports whether the server that is asked ever did. The error is ErrThrottled, or
// that of ctx. Leave must be called once.
func (g *Gate) Enter(ctx context.Context, key string, answered bool) (leave func(), err error) {
	g.mu.Lock()
	_, known := g.known.Get(key)
	at := &g.lanes[knownLane]
	switch {
	case !answered: // also for known keys, whose ids are not secret
		at = &g.lanes[nowhereLane]
	case !known:
		at = &g.lanes[unknownLane]
	}
	l := at.lines[key]
	if l == nil {
		l = &line{key: key}
		at.lines[key] = l
	}
	if at.free > 0 && l.busy < g.config.PerKey && len(l.waiting) == 0 {
		at.free--
		l.busy++
		g.mu.Unlock()
		return func() { g.leave(at, l) }, nil
	}
	if full := at.waiting >= g.config.Queue; full || len(l.waiting) >= g.config.QueuePerKey {
		at.forget(l)
		g.mu.Unlock()
		if g.config.Busy != nil {
			g.config.Busy(known)
		}
		if full {
			return nil, fmt.Errorf("%w: %d questions wait already", ErrThrottled, g.config.Queue)
		}
		return nil, fmt.Errorf("%w: %d questions about this access key wait already", ErrThrottled, g.config.QueuePerKey)
	}
	turn := make(chan struct{})
	at.waiting++
	if len(l.waiting) == 0 {
		at.turns = append(at.turns, l)
	}
	l.waiting = append(l.waiting, turn)
	g.mu.Unlock()
	return g.wait(ctx, at, l, turn, known)
}

func (g *Gate) wait(ctx context.Context, at *lane, l *line, turn chan struct{}, known bool) (func(), error) {
	timer := time.NewTimer(g.config.Wait)
	defer timer.Stop()
	var err error
	select {
	case <-turn:
		return func() { g.leave(at, l) }, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = fmt.Errorf("%w: waited %s for a turn", ErrThrottled, g.config.Wait)
	}
	g.mu.Lock()
	gone := at.abandon(l, turn)
	g.mu.Unlock()
	if !gone { // it became our turn just now
		return func() { g.leave(at, l) }, nil
	}
	if g.config.Busy != nil {
		g.config.Busy(known)
	}
	return nil, err
}

func (g *Gate) leave(at *lane, l *line) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at.free++
	l.busy--
	at.next(g.config.PerKey)
	at.forget(l)
}

// next gives free places to the next in turn.
func (a *lane) next(perKey int) {
	for n := 0; n < len(a.turns) && a.free > 0; {
		l := a.turns[n]
		if l.busy >= perKey {
			n++
			continue
		}
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
		a.waiting--
		a.free--
		l.busy++
		a.turns = append(a.turns[:n], a.turns[n+1:]...)
		if len(l.waiting) > 0 {
			a.turns = append(a.turns, l) // and now others
		}
		n = 0
	}
}

// abandon removes one that does not wait any more, and reports whether it was waiting.
func (a *lane) abandon(l *line, turn chan struct{}) bool {
	for n, waiting := range l.waiting {
		if waiting != turn {
			continue
		}
		l.waiting = append(l.waiting[:n:n], l.waiting[n+1:]...)
		a.waiting--
		if len(l.waiting) == 0 {
			for n, other := range a.turns {
				if other == l {
					a.turns = append(a.turns[:n], a.turns[n+1:]...)
					break
				}
			}
		}
		a.forget(l)
		return true
	}
	return false
}

// forget drops a line that nobody uses.
func (a *lane) forget(l *line) {
	if l.busy == 0 && len(l.waiting) == 0 && a.lines[l.key] == l {
		delete(a.lines, l.key)
	}
}
