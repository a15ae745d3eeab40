// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// watchAt is a watch at a door of which a server has told everything.
func watchAt(at string) (*Prober, *watch) {
	p := &Prober{failed: map[string]int{}}
	c := Config{TLS: &tls.Config{MinVersion: tls.VersionTLS12}}
	return p, &watch{
		prober: p, way: newWay(c, Door{Address: at}, newConnection), collection: "/leases",
		events: io.NopCloser(strings.NewReader("")), last: map[string]int64{},
	}
}

// TestWatchThatNobodyResumes has the server end a watch, and end the connection of the next one before there is TLS, as
// a front does that has no server: that is no end of a watch.
func TestWatchThatNobodyResumes(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = connection.Read(make([]byte, 1<<16)) // with something unread it would be a reset
			_ = connection.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	p, w := watchAt(listener.Addr().String())
	w.follow(ctx)
	if p.failed["cut"] != 1 || w.resumed != 0 {
		t.Errorf("a watch that nobody took again failed by %v and was resumed %d times, want one that was cut", p.failed, w.resumed)
	}
}

// TestWatchFailsBeforeItEnds looks that whoever waits for a watch waits until it is counted how it ended.
func TestWatchFailsBeforeItEnds(t *testing.T) {
	t.Parallel()
	p, w := watchAt("")
	w.events = io.NopCloser(iotest.ErrReader(errors.New("a failure")))
	p.mu.Lock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.follow(t.Context())
	}()
	ended := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.ended
	}
	for range 20 {
		if <-time.After(5 * time.Millisecond); ended() {
			t.Error("the watch has ended, and its failure is not counted yet")
			break
		}
	}
	p.mu.Unlock()
	if <-done; p.failed["failed"] != 1 || !ended() {
		t.Errorf("it failed by %v", p.failed)
	}
}

// TestWatchThatIsLate has a watch tell of everything, of some of it long after it was written.
func TestWatchThatIsLate(t *testing.T) {
	t.Parallel()
	p, w := watchAt("")
	l := newLease("/leases", 0, 1)
	w.leases = []*lease{l}
	for number, since := range []time.Duration{0, time.Second, patience + time.Second} {
		l.begins(int64(number))
		l.begun[int64(number)] = time.Now().Add(-since)
		var is leaseObject
		is.Metadata.Name, is.Spec.LeaseTransitions = l.name, int64(number)
		w.note(is)
	}
	if p.failed["timed out"] != 1 || len(p.failed) != 1 || w.latest < patience || len(l.begun) != 0 {
		t.Errorf("it failed by %v, the latest after %s; %d numbers are not told of", p.failed, w.latest, len(l.begun))
	}
}
