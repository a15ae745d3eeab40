// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/plane/frontservers"
	"muster.dev/muster/internal/platform/socketdir"
)

// failing is a listener that says errors before it accepts.
type failing struct {
	net.Listener
	errs []error
}

func (l *failing) Accept() (net.Conn, error) {
	if len(l.errs) == 0 {
		return l.Listener.Accept()
	}
	err := l.errs[0]
	l.errs = l.errs[1:]
	return nil, os.NewSyscallError("accept4", err)
}

// No error but that nothing listens ends a front, and with it the connections that are open.
func TestErrorsOfAccept(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	listener, err := net.Listen("tcp", w.config.Listen.String())
	if err != nil {
		t.Fatal(err)
	}
	var log remembered
	w.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	f, err := New(w.config)
	if err := errors.Join(err, f.take(f.servers())); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- f.accept(t.Context(), &failing{listener, []error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.EPERM, unix.EPROTO, unix.ENETDOWN}})
	}()
	if got, err := w.ask(); got != "a" {
		t.Errorf("%q, %v", got, err)
	}
	if n := log.has("cannot accept connections"); n != 1 {
		t.Errorf("the log says it %d times", n)
	}
	_ = listener.Close()
	if err := <-ended; err != nil {
		t.Errorf("closed: %v", err)
	}
	if err := f.accept(t.Context(), &failing{nil, []error{unix.EINVAL}}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("nothing listens: %v", err)
	}
}

// A front that may have few descriptors refuses connections before it lacks some for those that it has, for probes and
// for the next front.
func TestFewDescriptors(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	const few = 10
	w.descriptors = spared + 2*few
	w.process(t)
	var all []net.Conn
	for range few {
		c, err := net.Dial("tcp", w.config.Listen.String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		all = append(all, c)
	}
	for range 20 * few {
		c, err := net.Dial("tcp", w.config.Listen.String())
		if err == nil {
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			_, err = io.ReadAll(c)
			_ = c.Close()
		}
		if !errors.Is(err, unix.ECONNRESET) {
			t.Fatalf("a connection too many: %v", err)
		}
	}
	if got, err := w.askOver(all[few-1]); got != "a" {
		t.Errorf("the last connection that has a place: %q, %v", got, err)
	}
	_ = all[0].Close()
	soon(t, "a place is free again", func() bool { got, _ := w.ask(); return got == "a" })
	w.descriptors = 0
	w.process(t)
	soon(t, "the next front serves", func() bool { got, _ := w.ask(); return got == "a" })
	if got, err := w.askOver(all[few-2]); got != "a" {
		t.Errorf("a kept connection: %q, %v", got, err)
	}
}

// A front whose sockets cannot be made passes connections on, and makes them once they can be.
func TestSocketsThatCannotBeMade(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	dir := socketdir.Dir(w.config.Socket)
	paths := []string{filepath.Join(dir, "s"), filepath.Join(dir, "next")}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var log remembered
	w.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	_, _, ended := w.start(t)
	soon(t, "the log says both", func() bool { return log.has("begins anew") == 2 })
	if got, err := w.ask(); got != "a" {
		t.Errorf("%q, %v", got, err)
	}
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	soon(t, "the socket is there", func() bool {
		c, err := net.Dial("unix", w.config.Socket)
		return err == nil && c.Close() == nil
	})
	next, _, _ := w.start(t)
	soon(t, "the next front serves", func() bool { return next.isReady(a.address) })
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The kernel sends nothing over idle connections, which never leave the host, whether their front made the listener or
// took it over.
func TestNoKeepAlive(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	for turn := range 2 {
		f, _, _ := w.start(t)
		soon(t, "the front serves", func() bool { return f.isReady(a.address) && w.offered() })
		c, err := net.Dial("tcp", w.config.Listen.String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		soon(t, "the connection is passed on", func() bool { return len(f.slots) == 1 && f.pool.snapshot()[0].open == 1 })
		raw, err := os.ReadFile("/proc/net/tcp")
		if err != nil {
			t.Fatal(err)
		}
		client := netip.MustParseAddrPort(c.LocalAddr().String())
		other, found := fmt.Sprintf(":%04X 01 ", client.Port()), false
		for line := range strings.Lines(string(raw)) {
			if !strings.Contains(line, other) { // the socket of the front
				continue
			}
			found = true
			if fields := strings.Fields(line); !strings.HasPrefix(fields[5], "00:") {
				t.Errorf("turn %d: the kernel has a timer for an idle connection: %s", turn, line)
			}
		}
		if !found {
			t.Errorf("turn %d: the connection is not found", turn)
		}
	}
}
