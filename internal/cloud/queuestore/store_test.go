// SPDX-License-Identifier: Apache-2.0

package queuestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

const (
	one   = "00000000-0000-0000-0000-000000000001"
	other = "00000000-0000-0000-0000-000000000002"
	keeps = time.Hour
)

func message(id string, now time.Time) Message {
	return Message{ID: id, Body: "body of " + id, Sent: now, Visible: now}
}

// receipts are numbered.
func receipts() func() string {
	n := 0
	return func() string { n++; return fmt.Sprint("receipt-", n) }
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAMessageComesAgainUntilItIsDeleted(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := New(t.TempDir(), func() time.Time { return now })
	must(t, s.Send(one, keeps, message("a", now)))
	receive := func() []Message {
		t.Helper()
		got, err := s.Receive(one, keeps, 30*time.Second, 10, receipts())
		must(t, err)
		return got
	}
	first := receive()
	if len(first) != 1 || first[0].Received != 1 || !first[0].First.Equal(now) {
		t.Fatalf("received %+v", first)
	}
	if got := receive(); len(got) != 0 {
		t.Errorf("out of sight: %+v", got)
	}
	if c, err := s.Counts(one, keeps); err != nil || c != (Counts{Received: 1}) {
		t.Errorf("%+v, %v", c, err)
	}
	now = now.Add(30 * time.Second)
	again := receive()
	if len(again) != 1 || again[0].Received != 2 || !again[0].First.Equal(first[0].First) {
		t.Fatalf("received again %+v", again)
	}
	if done, err := s.Delete(one, "a", "another"); done || err != nil {
		t.Errorf("another receipt: %v, %v", done, err)
	}
	if shown, err := s.Hide(one, "a", again[0].Receipt, 0); !shown || err != nil {
		t.Errorf("%v, %v", shown, err)
	}
	last := receive()
	if done, err := s.Delete(one, "a", last[0].Receipt); !done || err != nil {
		t.Errorf("%v, %v", done, err)
	}
	now = now.Add(time.Minute)
	if got := receive(); len(got) != 0 {
		t.Errorf("deleted: %+v", got)
	}
}

// A store that is opened again, as by the process after one that was killed, has what was sent and not what was deleted.
func TestKilled(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	dir := t.TempDir()
	s := New(dir, func() time.Time { return now })
	for _, id := range []string{"a", "b", "c"} {
		must(t, s.Send(one, keeps, message(id, now)))
		now = now.Add(time.Second)
	}
	got, err := s.Receive(one, keeps, 30*time.Second, 2, receipts())
	must(t, err)
	_, err = s.Delete(one, "a", got[0].Receipt)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, one, ".d.json-1234"), []byte("{"), 0o600)) // half a file

	s = New(dir, func() time.Time { return now })
	left, err := s.Receive(one, keeps, 30*time.Second, 10, receipts())
	if err != nil || len(left) != 1 || left[0].ID != "c" {
		t.Errorf("received %+v, %v", left, err)
	}
	if done, err := s.Delete(one, "b", got[1].Receipt); !done || err != nil {
		t.Errorf("a receipt of before: %v, %v", done, err)
	}
	if c, err := s.Counts(one, keeps); err != nil || c != (Counts{Received: 1}) {
		t.Errorf("%+v, %v", c, err)
	}
	must(t, os.WriteFile(filepath.Join(dir, one, "e.json"), []byte("{"), 0o600))
	if _, err := New(dir, time.Now).Counts(one, keeps); err == nil {
		t.Error("a file that is no message is ignored")
	}
	must(t, s.Sweep(func() (map[string]bool, error) { return map[string]bool{other: true}, nil }))
	if _, err := os.Stat(filepath.Join(dir, one)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the queue is there: %v", err)
	}
	if err := s.Send(one, keeps, message("z", now)); !errors.Is(err, ErrGone) {
		t.Errorf("a queue that is gone takes messages: %v", err)
	}
}

// All queues together have a bound, since their messages are in memory; a queue that holds little goes on taking messages.
func TestAllQueuesTogetherAreBounded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := New(t.TempDir(), func() time.Time { return now })
	must(t, s.Send(one, keeps, message("a", now)))
	s.total.Store(MaxTotal) // as if other queues held that
	large := message("b", now)
	large.Body = strings.Repeat("x", Spared)
	if err := s.Send(one, keeps, large); !errors.Is(err, ErrFull) {
		t.Errorf("a large message: %v", err)
	}
	must(t, s.Send(one, keeps, message("c", now)))
	s.total.Store(0)
	other := New(s.dir, s.now)
	if got, err := other.Receive(one, keeps, 0, 10, receipts()); err != nil || len(got) != 2 || other.total.Load() != int64(2*overhead+len("body of a")*2) {
		t.Errorf("after a restart: %d messages, %d bytes, %v", len(got), other.total.Load(), err)
	}
	must(t, os.WriteFile(filepath.Join(s.dir, one, "broken.json"), []byte("{"), 0o600))
	third := New(s.dir, s.now)
	for range 3 {
		if err := third.Send(one, keeps, message("d", now)); err == nil || third.total.Load() != 0 {
			t.Errorf("of a queue that cannot be read %d bytes are counted, %v", third.total.Load(), err)
		}
	}
	must(t, os.Remove(filepath.Join(s.dir, one, "broken.json")))
	must(t, other.Purge(one))
	must(t, other.Send(one, keeps, message("d", now)))
	must(t, other.Remove(one))
	if left := other.total.Load(); left != 0 {
		t.Errorf("%d bytes are left of nothing", left)
	}
}

// A queue that is made while others are swept away keeps its messages.
func TestSweepSparesWhatIsMadeMeanwhile(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := New(t.TempDir(), func() time.Time { return now })
	must(t, s.Send(one, keeps, message("a", now)))
	must(t, s.Sweep(func() (map[string]bool, error) {
		must(t, s.Send(other, keeps, message("b", now))) // made after the list was read
		return map[string]bool{}, nil
	}))
	if got, err := s.Receive(other, keeps, time.Second, 10, receipts()); err != nil || len(got) != 1 {
		t.Errorf("received %v, %v", got, err)
	}
	must(t, s.Send(other, keeps, message("c", now)))
}

// A poll ends when its queue is removed.
func TestAwaitEndsWithTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t.TempDir(), time.Now)
		must(t, s.Send(one, keeps, message("a", time.Now().Add(time.Hour))))
		began, done := time.Now(), make(chan error)
		go func() { done <- s.Await(t.Context(), one, keeps, began.Add(20*time.Second)) }()
		synctest.Wait()
		must(t, s.Remove(one))
		must(t, <-done)
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the poll ended after %v", waited)
		}
	})
}

func TestBounds(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := New(t.TempDir(), func() time.Time { return now })
	large := message("a", now)
	large.Body = string(make([]byte, MaxBytes-100))
	must(t, s.Send(one, keeps, large))
	next := message("b", now)
	next.Body = string(make([]byte, 101))
	if err := s.Send(one, keeps, next); !errors.Is(err, ErrFull) {
		t.Errorf("beyond the bound: %v", err)
	}
	must(t, s.Send(other, keeps, next)) // each queue has its own
	now = now.Add(keeps)
	next.Sent = now
	must(t, s.Send(one, keeps, next)) // the first one has expired
	if c, err := s.Counts(one, keeps); err != nil || c.Visible != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	must(t, s.Purge(one))
	if c, err := s.Counts(one, keeps); err != nil || c != (Counts{}) {
		t.Errorf("%+v, %v", c, err)
	}
	for _, id := range []string{"", "..", "a/b", "QUEUE"} {
		if err := s.Send(id, keeps, next); err == nil {
			t.Errorf("the id %q is taken", id)
		}
	}
}

func TestAwait(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := New(dir, time.Now)
		began := time.Now()
		wait := func(d time.Duration) time.Duration {
			t.Helper()
			from := time.Now()
			must(t, s.Await(t.Context(), one, keeps, from.Add(d)))
			return time.Since(from)
		}
		if d := wait(20 * time.Second); d != 20*time.Second {
			t.Errorf("an empty queue: %s", d)
		}
		later := message("a", time.Now())
		later.Visible = time.Now().Add(5 * time.Second)
		must(t, s.Send(one, keeps, later))
		if d := wait(20 * time.Second); d != 5*time.Second {
			t.Errorf("a delayed message: %s", d)
		}
		if d := wait(20 * time.Second); d != 0 {
			t.Errorf("a message that is there: %s", d)
		}
		must(t, s.Purge(one))
		go func() {
			<-time.After(3 * time.Second)
			_ = s.Send(one, keeps, message("b", time.Now()))
		}()
		if d := wait(20 * time.Second); d != 3*time.Second {
			t.Errorf("a message that comes: %s", d)
		}
		must(t, s.Purge(one))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Await(ended, one, keeps, began.Add(time.Hour)); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that ended: %v", err)
		}
	})
}

// Whatever comes in whatever order, and however often the process is killed: no message that was acknowledged is lost
// before it is deleted or expires, and none that was deleted comes again.
func TestNothingIsLost(t *testing.T) {
	parent, round := t.TempDir(), 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		dir := filepath.Join(parent, strconv.Itoa(round))
		now := time.Unix(1_800_000_000, 0)
		clock := func() time.Time { return now }
		s, give := New(dir, clock), receipts()
		sent, held := map[string]bool{}, map[string]string{}
		for i := range rapid.IntRange(1, 25).Draw(r, "steps") {
			switch rapid.SampledFrom([]string{"send", "receive", "delete", "wait", "kill"}).Draw(r, "step") {
			case "send":
				id := fmt.Sprint("m", i)
				must(t, s.Send(one, keeps, message(id, now)))
				sent[id] = true
			case "receive":
				got, err := s.Receive(one, keeps, 10*time.Second, rapid.IntRange(1, 10).Draw(r, "most"), give)
				must(t, err)
				for _, m := range got {
					if !sent[m.ID] {
						r.Fatalf("%s came and is not there", m.ID)
					}
					held[m.ID] = m.Receipt
				}
			case "delete":
				for id, receipt := range held {
					done, err := s.Delete(one, id, receipt)
					must(t, err)
					if done != sent[id] {
						r.Fatalf("deleting %s: %v", id, done)
					}
					delete(sent, id)
					delete(held, id)
					break
				}
			case "wait":
				now = now.Add(10 * time.Second)
			case "kill":
				s = New(dir, clock)
			}
		}
		c, err := New(dir, clock).Counts(one, keeps)
		must(t, err)
		if c.Visible+c.Received != len(sent) {
			r.Fatalf("%+v, want %d messages", c, len(sent))
		}
	})
}
