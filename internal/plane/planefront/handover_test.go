// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/frontservers"
	"muster.dev/muster/internal/platform/handover"
	"muster.dev/muster/internal/platform/socketdir"
)

// offered reports whether a front offers its listener.
func (w *world) offered() bool {
	c, err := net.Dial("unix", filepath.Join(socketdir.Dir(w.config.Socket), "next"))
	return err == nil && c.Close() == nil
}

// nextFront connects as a next front does.
func (w *world) nextFront(t *testing.T) *net.UnixConn {
	t.Helper()
	var next net.Conn
	soon(t, "the socket is there", func() (ok bool) {
		var err error
		next, err = net.Dial("unix", filepath.Join(socketdir.Dir(w.config.Socket), "next"))
		return err == nil
	})
	t.Cleanup(func() { _ = next.Close() })
	return next.(*net.UnixConn) //nolint:forcetypeassert // of a unix socket
}

// remembered is a log that a test reads.
type remembered struct {
	mu   sync.Mutex
	text strings.Builder
}

func (r *remembered) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(line)
}

// has counts lines that have a text.
func (r *remembered) has(text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(r.text.String(), text)
}

// A next front that dies before it accepts leaves the old one as it was.
func TestHandoverThatFails(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	f, _, _ := w.start(t)
	soon(t, "the server is ready", func() bool { return f.isReady(a.address) && w.offered() })
	for range 3 {
		died := errors.New("it died")
		err := f.handover().Take(t.Context(), func(sockets map[string]*os.File) error {
			defer handover.Close(sockets)
			if len(sockets) != 1 || sockets[published] == nil {
				t.Errorf("it got %v", sockets)
			}
			return died
		})
		if !errors.Is(err, died) {
			t.Fatal(err)
		}
		for range 5 {
			if got, err := w.ask(); got != "a" {
				t.Fatalf("%q, %v", got, err)
			}
		}
	}
}

// A next front that says nothing does not keep another one from taking over.
func TestASilentNextFront(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	_, _, ended := w.start(t)
	for range 3 {
		w.nextFront(t)
	}
	next, _, _ := w.start(t)
	began := time.Now()
	soon(t, "the next front serves", func() bool { return next.isReady(a.address) })
	if err := <-ended; err != nil || time.Since(began) > handover.Patience {
		t.Errorf("the old front: %v after %v", err, time.Since(began))
	}
}

// Of several next fronts that start together, with clients that connect all the while, a single one serves in the end.
func TestManyNextFronts(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	first, _, ended := w.start(t)
	soon(t, "the server is ready", func() bool { return first.isReady(a.address) })
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got, err := w.ask(); got != "a" {
					t.Errorf("meanwhile: %q, %v", got, err)
					return
				}
			}
		})
	}
	const more = 8
	var over atomic.Int32
	all := []<-chan error{ended}
	for range more {
		_, _, ended := w.start(t)
		all = append(all, ended)
	}
	for _, ended := range all {
		go func() {
			if err := <-ended; err != nil {
				t.Errorf("a front: %v", err)
			}
			over.Add(1)
		}()
	}
	soon(t, "all but one have ended", func() bool { return over.Load() == more })
	close(stop)
	clients.Wait()
	if got, err := w.ask(); got != "a" || over.Load() != more {
		t.Errorf("%q, %v; %d fronts have ended", got, err, over.Load())
	}
}

// A front takes over from one at another address, where a connection goes on and no new one is taken; while its own
// address is another program's, the old front stays as it was.
func TestAnotherAddress(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	old, _, ended := w.start(t)
	soon(t, "the server is ready", func() bool { return old.isReady(a.address) })
	kept, err := net.Dial("tcp", w.config.Listen.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kept.Close() }()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other := *w
	other.config.Listen = netip.MustParseAddrPort(taken.Addr().String())
	other.start(t)
	for range 5 {
		if got, err := w.ask(); got != "a" {
			t.Fatalf("%q, %v", got, err)
		}
		<-time.After(busyEvery / 2)
	}
	_ = taken.Close()
	soon(t, "the next front serves", func() bool { got, _ := other.ask(); return got == "a" })
	if got, err := w.askOver(kept); got != "a" {
		t.Errorf("the kept connection: %q, %v", got, err)
	}
	if got, err := w.ask(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("at the old address: %q, %v", got, err)
	}
	_ = kept.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
