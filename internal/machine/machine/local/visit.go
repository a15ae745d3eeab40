// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Root on a machine can have a path there that never answers: a file system whose program hangs (FUSE). A thread that
// is in the machine then hangs, too, until that program ends or the machine does. So callers wait for a call inside a
// machine only for a while, and the number of threads in a machine is bounded.

const (
	// visitTime is how long anything waits for what it does inside of a machine.
	visitTime = 10 * time.Second
	// maxVisits is how many calls are inside of one machine at a time. Each may hang, with a thread of the service.
	maxVisits = 8
)

// ErrHangs says that something on a machine does not answer.
var ErrHangs = errors.New("the machine does not answer at that path, as if the program of a file system on it hangs (FUSE): end that program, or replace the machine")

// visits are the calls that are inside of machines.
type visits struct {
	time  time.Duration // how long a call waits
	mutex sync.Mutex
	of    map[string]*visited // by machine
}

// visited is a machine with calls inside, or with calls that wait to get in.
type visited struct {
	inside         chan struct{}
	users, hanging int
}

// visit is one call inside of a machine.
type visit struct {
	of    *visited
	state atomic.Int32
	leave func(hung bool)
}

const (
	visiting  = iota
	committed // it is about to do what cannot be taken back, and the caller waits for it
	ended
	left // the caller does not wait any more
)

// begin waits until another call may enter a machine. A machine that has all its calls hang gets no more, without
// waiting.
func (v *visits) begin(id string) (*visit, error) {
	v.mutex.Lock()
	if v.of == nil {
		v.of = map[string]*visited{}
	}
	m := v.of[id]
	if m == nil {
		m = &visited{inside: make(chan struct{}, maxVisits)}
		v.of[id] = m
	}
	m.users++
	full := m.hanging >= maxVisits
	v.mutex.Unlock()
	done := func(hung bool) {
		v.mutex.Lock()
		defer v.mutex.Unlock()
		if hung {
			m.hanging--
		}
		if m.users--; m.users == 0 {
			delete(v.of, id)
		}
	}
	if full {
		done(false)
		return nil, fmt.Errorf("%w (%d calls wait there)", ErrHangs, maxVisits)
	}
	timer := time.NewTimer(v.time)
	defer timer.Stop()
	select {
	case m.inside <- struct{}{}:
	case <-timer.C:
		done(false)
		return nil, fmt.Errorf("%w (%d calls wait there)", ErrHangs, maxVisits)
	}
	return &visit{of: m, leave: func(hung bool) {
		<-m.inside
		done(hung)
	}}, nil
}

// end is called where a call has ended, by the thread that was in the machine.
func (v *visit) end() {
	v.leave(!v.state.CompareAndSwap(visiting, ended) && !v.state.CompareAndSwap(committed, ended))
}

// wait waits for the result of a call that has begun. A call that has committed itself has the time once more. The
// kernel holds up a mount for longer only on a path that the machine locks: then the mount appears later, or never, to
// the machine's own loss.
func (v *visits) wait(one *visit, done <-chan error) error {
	for _, state := range []int32{visiting, committed} {
		timer := time.NewTimer(v.time)
		select {
		case err := <-done:
			timer.Stop()
			return err
		case <-timer.C:
		}
		v.mutex.Lock()
		gone := one.state.CompareAndSwap(state, left)
		if gone {
			one.of.hanging++
		}
		v.mutex.Unlock()
		if gone {
			return ErrHangs
		}
	}
	return <-done // it has ended
}

// commit is called before any step that must not happen once the caller has stopped waiting. The steps after it must
// not look up paths of the machine.
func (v *visit) commit() error {
	if v.state.CompareAndSwap(visiting, committed) {
		return nil
	}
	return ErrHangs
}
