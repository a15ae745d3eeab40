// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// connections are how many the load has: clients of an API server are many, and one of them stands behind no other.
const connections = 16

// load asks a server so many times a second, whatever becomes of the answers. The time of a late question counts from
// when it was due.
type load struct {
	address string
	config  *tls.Config
	wires   []*wire

	good      func(status string, body []byte) error
	due, sent []time.Time
	took      []float64 // milliseconds; of each
	left      sync.WaitGroup
	mu        sync.Mutex
	refused   int
	first     error
}

// newLoad connects.
func newLoad(ctx context.Context, address string, config *tls.Config) (*load, error) {
	l := &load{address: address, config: config.Clone()}
	l.config.NextProtos = []string{"h2"}
	for range connections {
		w, err := dialWire(ctx, address, l.config, l.answered)
		if err != nil {
			l.close()
			return nil, err
		}
		l.wires = append(l.wires, w)
	}
	return l, nil
}

func (l *load) close() {
	for _, w := range l.wires {
		w.close()
	}
}

// answered notes an answer.
func (l *load) answered(n int, status string, body []byte) {
	l.took[n] = milliseconds(time.Since(l.due[n]))
	err := errors.New("it was not answered")
	if status != "" {
		err = l.good(status, body)
	}
	if err != nil {
		l.mu.Lock()
		l.refused++
		if l.first == nil {
			l.first = err
		}
		l.mu.Unlock()
	}
	l.left.Done()
}

// run asks all questions and waits for their answers. Answers that are not good were refusals.
func (l *load) run(ctx context.Context, questions []question, good func(status string, body []byte) error, rate float64) (result, error) {
	l.good, l.refused, l.first = good, 0, nil
	l.due, l.sent, l.took = make([]time.Time, len(questions)), make([]time.Time, len(questions)), make([]float64, len(questions))
	begin := time.Now().Add(time.Millisecond)
	for n := range questions {
		l.due[n] = begin.Add(time.Duration(float64(n) / rate * float64(time.Second)))
	}
	failed := make(chan error, 1)
	go func() { failed <- l.send(ctx, questions) }()
	if err := <-failed; err != nil {
		return result{}, err
	}
	l.left.Wait()
	seconds := time.Since(begin).Seconds()
	if l.first != nil {
		fmt.Fprintf(os.Stderr, "%d of %d good tokens were refused: %v\n", l.refused, len(questions), l.first)
	}
	late := make([]float64, len(questions))
	for n := range late {
		late[n] = milliseconds(l.sent[n].Sub(l.due[n]))
	}
	slices.Sort(late)
	slices.Sort(l.took)
	return result{
		Rate: float64(len(questions)) / seconds, Refused: float64(l.refused),
		P50: percentile(l.took, 50), P99: percentile(l.took, 99), Max: l.took[len(l.took)-1], Lag: percentile(late, 99),
	}, nil
}

// send sends them when they are due. Go's timers are as exact as epoll_wait(2), which knows whole milliseconds only, so
// that two would come at once every other time.
func (l *load) send(ctx context.Context, questions []question) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for n, q := range questions {
		if wait := time.Until(l.due[n]); wait > 0 {
			rest := syscall.NsecToTimespec(wait.Nanoseconds())
			_ = syscall.Nanosleep(&rest, nil) // woken by a signal it sends too early
		}
		w := l.wires[n%len(l.wires)]
		select {
		case <-w.done:
			var err error
			if w, err = dialWire(ctx, l.address, l.config, l.answered); err != nil {
				return err
			}
			l.wires[n%len(l.wires)] = w
		default:
		}
		l.left.Add(1)
		if err := w.ask(ctx, n, q, &l.sent[n]); err != nil {
			return err
		}
	}
	return nil
}
