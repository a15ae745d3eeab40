// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/frontservers"
)

// bad are files of servers that cannot be used.
func bad(t *testing.T, w *world) map[string]func() {
	t.Helper()
	put := func(raw []byte) func() {
		return func() {
			if err := os.WriteFile(w.config.Servers, raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	whole, err := os.ReadFile(w.config.Servers)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func(){
		"missing":   func() { _ = os.Remove(w.config.Servers) },
		"empty":     put(nil),
		"truncated": put(whole[:len(whole)-3]),
		"huge":      put(bytes.Repeat([]byte(" "), 64<<20)),
		"directory": func() { _ = os.Remove(w.config.Servers); _ = os.Mkdir(w.config.Servers, 0o700) },
	}
}

// A front that has no servers takes no listener over from one that has.
func TestNoFileOfServers(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	old, _, _ := w.start(t)
	soon(t, "the server is ready", func() bool { return old.isReady(a.address) })
	for name, spoil := range bad(t, w) {
		_ = os.RemoveAll(w.config.Servers)
		spoil()
		next, err := New(w.config)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		err = next.Run(ctx)
		cancel()
		if err == nil || !strings.Contains(err.Error(), "servers") {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := w.ask(); got != "a" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A front whose file of servers is spoilt later goes on with the servers that it knows, and says so once.
func TestTheFileOfServersIsSpoilt(t *testing.T) {
	a, b := newBackend(t, "a"), newBackend(t, "b")
	w := newWorld(t, frontservers.Server{Address: a.address})
	var log remembered
	w.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	f, _, _ := w.start(t)
	soon(t, "the server is ready", func() bool { return f.isReady(a.address) })
	said := 0
	for name, spoil := range bad(t, w) {
		_ = os.RemoveAll(w.config.Servers)
		spoil()
		soon(t, name+" is logged", func() bool { return log.has("the file of servers is not used") > said })
		said = log.has("the file of servers is not used")
		if got, err := w.ask(); got != "a" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	_ = os.RemoveAll(w.config.Servers)
	w.tell(t, frontservers.Server{Address: b.address})
	soon(t, "the new server is used", func() bool { got, _ := w.ask(); return got == "b" })
}

// A file that cannot be read at any look is in the log once.
func TestTheLogSaysItOnce(t *testing.T) {
	w := newWorld(t)
	var log remembered
	w.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	f, err := New(w.config)
	if err := errors.Join(err, os.Remove(w.config.Servers)); err != nil {
		t.Fatal(err)
	}
	file := f.servers()
	file.Poll = time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	f.follow(ctx, file)
	if n := log.has("the file of servers is not used"); n != 1 {
		t.Errorf("the log says it %d times", n)
	}
}
