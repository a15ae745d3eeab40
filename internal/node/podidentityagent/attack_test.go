// SPDX-License-Identifier: Apache-2.0

package podidentityagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// hanging does not answer once it is told so, as a service behind a wall.
type hanging struct {
	mu    sync.Mutex
	hangs bool
	asked int
}

func (h *hanging) Ask(ctx context.Context, _ string) (Credentials, error) {
	h.mu.Lock()
	h.asked++
	hangs := h.hangs
	h.mu.Unlock()
	if hangs {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		<-ctx.Done()
		return Credentials{}, ctx.Err()
	}
	return Credentials{AccessKeyID: "ASIA1", Expiration: time.Now().Add(6 * time.Hour)}, nil
}

// While EKS Auth hangs, nobody waits for longer than SDKs do where credentials are remembered, and nobody for the
// questions of others.
func TestServiceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := &hanging{}
		c := newCache(ask, time.Now)
		ends := time.Now().Add(24 * time.Hour)
		if _, err := c.get(t.Context(), [32]byte{1}, "token", ends); err != nil {
			t.Fatal(err)
		}
		ask.hangs = true
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		var group sync.WaitGroup
		get := func(key byte, most time.Duration, known bool) {
			group.Go(func() {
				began := time.Now()
				body, err := c.get(t.Context(), [32]byte{key}, "token", ends)
				if took := time.Since(began); took > most || (err == nil) != known || known != strings.Contains(string(body), "ASIA1") {
					t.Errorf("key %d: %q, %v after %s", key, body, err, took)
				}
			})
		}
		for range 20 {
			get(1, time.Second, true)
			get(2, patience, false)
		}
		group.Wait()
		if ask.asked != 3 {
			t.Errorf("asked %d times: want one question for each token", ask.asked)
		}
	})
}

// The one who asked first may go away: the others get the answer.
func TestAskerThatGoesAway(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	c := newCache(asking(func(ctx context.Context) error { leave(); return ctx.Err() }), time.Now)
	if _, err := c.get(gone, [32]byte{1}, "token", time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}
}

type asking func(context.Context) error

func (a asking) Ask(ctx context.Context, _ string) (Credentials, error) {
	return Credentials{AccessKeyID: "ASIA1", Expiration: time.Now().Add(6 * time.Hour)}, a(ctx)
}

// A pod that is refused a thousand times does not fill the log.
func TestLogIsNotFlooded(t *testing.T) {
	for name, p := range map[string]pods{"another's token": {}, "no addresses": {errors.New("damaged")}} {
		w := newWorld(t, p)
		var log strings.Builder
		w.config.Log = slog.New(slog.NewTextHandler(&log, nil))
		for range 1000 {
			if got := w.get("10.0.0.1", w.token("uid-db")); got.Code < 400 {
				t.Fatalf("%s: %d", name, got.Code)
			}
		}
		if lines := strings.Count(log.String(), "\n"); lines != linesBurst {
			t.Errorf("%s: %d lines", name, lines)
		}
		if w.get("10.0.0.2", w.token("uid-web")); strings.Count(log.String(), "\n") != linesBurst+1 {
			t.Errorf("%s: nothing is said of another pod", name)
		}
	}
}

// One address holds so many connections, and leaves the others theirs.
func TestConnectionsOfOneAddress(t *testing.T) {
	w := newWorld(t, pods{})
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	healthy := func(from string) error {
		dialer := &net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0))}
		c, err := dialer.DialContext(ctx, "tcp4", listener.Addr().String())
		if err != nil { // it was reset at once
			return err
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", HealthPath, AddressIPv4); err != nil {
			return err
		}
		head := make([]byte, 12)
		if _, err := io.ReadFull(c, head); err != nil || string(head) != "HTTP/1.1 200" {
			return fmt.Errorf("%q, %w", head, err)
		}
		return nil
	}
	for range maxPerAddress {
		if err := healthy("127.0.0.1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := healthy("127.0.0.1"); err == nil {
		t.Error("one more is admitted")
	}
	if err := healthy("127.0.0.2"); err != nil {
		t.Errorf("another address: %v", err)
	}
}
