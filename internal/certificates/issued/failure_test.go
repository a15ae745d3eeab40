// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/certificates/policy"
)

// exactly checks that requests 0 to n-1 are stored, each once.
func exactly(t *testing.T, s *server, n int) {
	t.Helper()
	uids, _ := s.stored()
	for i := range n {
		if got := uids[entry(i, "", "").UID]; got != 1 {
			t.Errorf("request %d is stored %d times", i, got)
		}
	}
	if len(uids) != n {
		t.Errorf("%d requests are stored, want %d", len(uids), n)
	}
}

func TestWritesThatFailForAWhile(t *testing.T) {
	refused := errors.New("etcdserver: request timed out")
	for name, tc := range map[string]struct {
		before func(verb string) error
		says   string
	}{
		"the API server is down": {func(string) error { return errors.New("connection refused") }, "connection refused"},
		"writes time out": {func(verb string) error {
			if verb == "create" || verb == "update" {
				return refused
			}
			return nil
		}, "request timed out"},
		"the namespace is missing": {func(verb string) error {
			if verb == "create" {
				return apierrors.NewNotFound(corev1.Resource("namespaces"), namespace)
			}
			return nil
		}, "the namespace kube-system does not exist: create it"},
		"it may not": {func(verb string) error {
			if verb == "create" {
				return apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no role"))
			}
			return nil
		}, "forbidden: no role"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				r := start(t, s)
				s.fail(tc.before)
				for n := range 30 {
					r.Add(entry(n, fmt.Sprint("node-", n), "i-1"))
					elapse(2 * time.Second)
				}
				known(t, "while nothing can be written", r.KeyOwner(key(0)), "node-0")
				absent(t, "while nothing can be written", r.KeyOwner(key(99)))
				if r.Flushed(entry(0, "", "").UID) || s.written() > 0 {
					t.Error("something was written")
				}
				if st := r.Stats(); st.Pending != 30 || st.Waiting != time.Minute {
					t.Errorf("stats %+v", st)
				}
				if said := r.log.String(); strings.Count(said, "issued certificates not recorded") != 1 || !strings.Contains(said, tc.says) {
					t.Errorf("the log says\n%s", said)
				}
				s.fail(nil)
				elapse(40 * time.Second)
				exactly(t, s, 30)
				if !strings.Contains(r.log.String(), "recorded again") || !r.Flushed(entry(0, "", "").UID) || r.Stats().Pending > 0 {
					t.Errorf("after it came back: %+v\n%s", r.Stats(), r.log)
				}
				r.Add(entry(30, "b", "i-2"))
				elapse(3 * time.Second)
				exactly(t, s, 31)
			})
		})
	}
}

func TestTooMuchPendingIsVouchedForByNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s, func(c *Config) { c.MaxPending = 10 })
		s.fail(func(string) error { return errors.New("no space left") })
		r.alls()
		for n := range 11 {
			absent(t, "while there is room", r.KeyOwner(key(99)))
			r.Add(entry(n, "a", "i-1"))
		}
		elapse(3 * time.Second)
		unknown(t, "a new key", r.KeyOwner(key(99)), "11 certificates have not been recorded: writing ConfigMap")
		unknown(t, "a machine", r.LastMachine("a"), "no space left")
		known(t, "a known key", r.KeyOwner(key(1)), "a")
		r.alls()
		s.fail(nil)
		elapse(time.Minute)
		absent(t, "after it came back", r.KeyOwner(key(99)))
		if r.alls() != 1 {
			t.Error("nobody was told")
		}
	})
}

// After that the requests, which hold the certificates, are deleted by upstream's cleaner: a crash would lose them.
func TestWhatWaitsTooLongIsVouchedForByNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		r.Add(entry(0, "a", "i-1"))
		elapse(3 * time.Second)
		attempts := 0
		s.fail(func(string) error { attempts++; return errors.New("no space left") })
		r.Add(entry(1, "a", "i-1"))
		elapse(29 * time.Minute)
		if attempts < 55 || attempts > 65 {
			t.Errorf("%d attempts in 29 minutes", attempts)
		}
		absent(t, "for half an hour", r.KeyOwner(key(99)))
		elapse(2 * time.Minute)
		unknown(t, "after it", r.KeyOwner(key(99)), "certificates issued 31m0s ago have not been recorded: writing ConfigMap")
		r.alls()
		s.fail(nil)
		elapse(time.Minute)
		absent(t, "after it came back", r.KeyOwner(key(99)))
		if r.alls() != 1 {
			t.Error("nobody was told")
		}
	})
}

// Under load something is always pending: it is still written every two seconds, and not as fast as it can be.
func TestLoadDoesNotWriteWithoutPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		n := 0
		s.after = func(string) error { n++; r.Add(entry(n, "a", "i-1")); return nil }
		r.Add(entry(0, "a", "i-1"))
		elapse(21 * time.Second)
		if s.written() < 10 || s.written() > 11 {
			t.Errorf("%d writes in 21 s", s.written())
		}
		if st := r.Stats(); st.Pending != 1 || st.Waiting > 4*time.Second {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestTwoReplicasRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		small := func(c *Config) { c.SegmentBytes = 16 << 10 }
		a, b := start(t, s, small), start(t, s, small)
		for n := range 400 {
			r := []*running{a, b}[n%2]
			r.Add(entry(n, fmt.Sprint("node-", n), "i-1"))
			if n%40 == 0 {
				elapse(2 * time.Second)
			}
		}
		elapse(10 * time.Second)
		exactly(t, s, 400)
		for n := range 400 {
			for _, r := range []*running{a, b} {
				known(t, "by either", r.KeyOwner(key(n)), fmt.Sprint("node-", n))
				if !r.Flushed(entry(n, "", "").UID) {
					t.Errorf("request %d is not flushed", n)
				}
			}
		}
	})
}

// The watch of one replica is cut while the other writes: only conflicts tell it.
func TestConflictsAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		blind, other := start(t, s), start(t, s)
		s.fail(func(verb string) error {
			if verb == "watch" || verb == "list" {
				return errors.New("overloaded")
			}
			return nil
		})
		s.cut()
		for n := range 20 {
			r := []*running{blind, other}[n%2]
			r.Add(entry(n, fmt.Sprint("node-", n), "i-1"))
			elapse(3 * time.Second)
		}
		exactly(t, s, 20)
		known(t, "learnt from a conflict", other.KeyOwner(key(0)), "node-0")
		if old := other.KeyOwner(key(0)); time.Since(old.At) < 50*time.Second {
			t.Errorf("with its watch cut it answers as of %s ago", time.Since(old.At))
		}
		blind.alls()
		s.fail(nil)
		elapse(2 * time.Minute)
		if f := blind.KeyOwner(key(99)); !f.At.Equal(time.Now()) || f.State != policy.Absent {
			t.Errorf("after the watch was restored: %+v", f)
		}
		if blind.alls() != 1 {
			t.Errorf("nobody was told that the watch goes on\n%s", blind.log)
		}
	})
}

// The write was done and its answer was lost: it is done again, and must not be there twice.
func TestLostAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		lost := true
		var mu sync.Mutex
		s.after = func(string) error {
			mu.Lock()
			defer mu.Unlock()
			if lost = !lost; lost {
				return errors.New("http2: client connection lost")
			}
			return nil
		}
		r := start(t, s, func(c *Config) { c.SegmentBytes = 4 << 10 })
		for n := range 60 {
			r.Add(entry(n, fmt.Sprint("node-", n), "i-1"))
			elapse(time.Second)
		}
		elapse(time.Minute)
		exactly(t, s, 60)
	})
}

func TestSegmentsDeletedBySomebodyAreWrittenAgain(t *testing.T) {
	for name, cut := range map[string]bool{"seen by the watch": false, "seen by a new list": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				r := start(t, s, func(c *Config) { c.SegmentBytes = 4 << 10 })
				for n := range 40 {
					r.Add(entry(n, fmt.Sprint("node-", n), "i-1"))
				}
				elapse(3 * time.Second)
				if cut {
					s.breaks(errors.New("connection refused"))
				}
				for _, cm := range s.list(everything).Items {
					if err := s.remove(cm.Name, nil); err != nil {
						t.Fatal(err)
					}
				}
				if uids, _ := s.stored(); len(uids) > 0 {
					t.Fatalf("still there: %v", uids)
				}
				synctest.Wait()
				known(t, "meanwhile", r.KeyOwner(key(0)), "node-0")
				s.fail(nil)
				elapse(2 * time.Minute)
				exactly(t, s, 40)
				if !strings.Contains(r.log.String(), "deleted by somebody") {
					t.Errorf("the log says\n%s", r.log)
				}
			})
		})
	}
}

func TestThatNothingCanBeReadIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.breaks(errors.New("connection refused"))
		r := start(t, s)
		f := r.KeyOwner(key(1))
		unknown(t, "segments", f, "it has not been read yet: connection refused")
		if f.Soon {
			t.Error("soon, although nothing answers")
		}
		s.fail(nil)
		elapse(2 * time.Minute)
		absent(t, "after it came back", r.KeyOwner(key(1)))
	})
}
