// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"slices"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// item is a request in the queue.
type item struct {
	name, requester, signer string
	about                   string // the common name, of a requester that may be many machines
}

// is reports whether a request has been read again that is this one, or another of its name.
func (i item) is(csr *certificatesv1.CertificateSigningRequest) bool {
	return i.name == csr.Name && i.requester == csr.Spec.Username && i.signer == csr.Spec.SignerName
}

// queue hands out requests fairly: signers take turns, and of one signer the requesters do, so that a requester with
// one request waits for one of each flooding requester, not for all of them. Requests of many machines with one token
// take turns by common name in the turns of that token, so that one machine does not hold up the others, nor gain by
// inventing names. No requester and no signer holds more than its share of the workers, so what is slow or hangs holds
// up its own kind only. An item is never in two hands, and one that is added while it is in hand comes again.
type queue struct {
	shares  func() shares
	alone   bool // there is one signer only, which may hold all workers
	mu      sync.Mutex
	wake    *sync.Cond
	signers []*signerQueue // whose turn is next first
	queued  map[item]bool
	inHand  map[item]bool
	busy    map[string]int // items in hand by requester
	later   map[item]*time.Timer
	count   int
	idle    int
	closed  bool
}

// shares are how many workers one signer and one requester may hold. That of a signer must be larger, or one requester
// would hold up all others of its signer.
type shares struct{ signer, requester int }

type signerQueue struct {
	name  string
	lanes map[string]*lane
	turns []*lane // with items, whose turn is next first
	busy  int
}

// lane holds what one requester asks of one signer.
type lane struct {
	requester string
	names     map[string]*subject
	turns     []*subject // with items, whose turn is next first
}

// subject is a common name that somebody asks for.
type subject struct{ items []item }

func newQueue(share func() shares, signers int) *queue {
	q := &queue{
		shares: share, alone: signers == 1, queued: map[item]bool{}, inHand: map[item]bool{}, busy: map[string]int{}, later: map[item]*time.Timer{},
	}
	q.wake = sync.NewCond(&q.mu)
	return q
}

// add queues an item, unless it is queued already.
func (q *queue) add(i item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.queued[i] {
		return
	}
	q.queued[i] = true
	if !q.inHand[i] {
		q.push(i)
	}
}

// addAfter queues an item after a while. Of several times the last one given counts.
func (q *queue) addAfter(i item, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if t := q.later[i]; t != nil {
		t.Stop()
	}
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		q.mu.Lock()
		current := q.later[i] == timer
		if current {
			delete(q.later, i)
		}
		q.mu.Unlock()
		if current {
			q.add(i)
		}
	})
	q.later[i] = timer
}

// forget takes back what addAfter was told.
func (q *queue) forget(i item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.later[i]; t != nil {
		t.Stop()
		delete(q.later, i)
	}
}

// get waits for an item. It returns false when the queue is closed.
func (q *queue) get() (i item, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.closed {
			return item{}, false
		}
		if i, ok = q.pop(); ok {
			delete(q.queued, i)
			q.inHand[i] = true
			return i, true
		}
		q.idle++
		q.wake.Wait()
		q.idle--
	}
}

// starving reports whether items wait that no worker will take: all are busy, or the idle ones may not have them.
func (q *queue) starving() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count == 0 {
		return false
	}
	_, _, ok := q.next()
	return q.idle == 0 || !ok
}

// done gives an item back.
func (q *queue) done(i item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.inHand, i)
	if q.busy[i.requester]--; q.busy[i.requester] <= 0 {
		delete(q.busy, i.requester)
	}
	q.signer(i.signer).busy--
	if q.queued[i] {
		q.push(i)
	}
	q.wake.Signal() // a share may have become free
}

// rouse lets the waiting workers look again: a share may have become larger.
func (q *queue) rouse() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wake.Broadcast()
}

// depth counts the items that wait for a worker.
func (q *queue) depth() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}

// close ends the handing out.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, t := range q.later {
		t.Stop()
	}
	clear(q.later)
	q.wake.Broadcast()
}

func (q *queue) push(i item) {
	s := q.signer(i.signer)
	l := s.lanes[i.requester]
	if l == nil {
		l = &lane{requester: i.requester, names: map[string]*subject{}}
		s.lanes[i.requester] = l
		s.turns = append(s.turns, l)
	}
	l.push(i)
	q.count++
	q.wake.Signal()
}

func (q *queue) signer(name string) *signerQueue {
	for _, s := range q.signers {
		if s.name == name {
			return s
		}
	}
	s := &signerQueue{name: name, lanes: map[string]*lane{}}
	q.signers = append(q.signers, s)
	return s
}

// next finds the next turn: the place of the signer, and of the lane in it.
func (q *queue) next() (signer, turn int, ok bool) {
	share := q.shares()
	for n, s := range q.signers {
		if s.busy >= share.signer && !q.alone {
			continue
		}
		for t, l := range s.turns {
			if q.busy[l.requester] < share.requester {
				return n, t, true
			}
		}
	}
	return 0, 0, false
}

func (q *queue) pop() (item, bool) {
	n, t, ok := q.next()
	if !ok {
		return item{}, false
	}
	s := q.signers[n]
	q.signers = append(slices.Delete(q.signers, n, n+1), s)
	l := s.turns[t]
	if t == 0 {
		s.turns = s.turns[1:]
	} else {
		s.turns = slices.Delete(s.turns, t, t+1)
	}
	i := l.take()
	if len(l.turns) > 0 {
		s.turns = append(s.turns, l)
	} else {
		delete(s.lanes, l.requester)
	}
	q.count--
	q.busy[l.requester]++
	s.busy++
	return i, true
}

func (l *lane) push(i item) {
	s := l.names[i.about]
	if s == nil {
		s = &subject{}
		l.names[i.about] = s
		l.turns = append(l.turns, s)
	}
	s.items = append(s.items, i)
}

// take returns the newest request of a node, which is the one that its kubelet waits for. Others may be many machines
// behind one name, and are served in the order they came.
func (l *lane) take() (i item) {
	s := l.turns[0]
	l.turns = l.turns[1:]
	if strings.HasPrefix(l.requester, nodeUserPrefix) {
		last := len(s.items) - 1
		i, s.items = s.items[last], s.items[:last]
	} else {
		i, s.items = s.items[0], s.items[1:]
	}
	if len(s.items) > 0 {
		l.turns = append(l.turns, s)
	} else {
		delete(l.names, i.about)
	}
	return i
}
