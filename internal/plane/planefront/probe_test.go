// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/plane/frontservers"
	"muster.dev/muster/internal/platform/atomicfile"
)

// A server that does not answer delays the probes of no other one.
func TestAServerThatDoesNotAnswer(t *testing.T) {
	a, hangs := newBackend(t, "a"), newBackend(t, "hangs")
	asked, over := make(chan struct{}, 100), make(chan struct{}, 100)
	hangs.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
		over <- struct{}{}
	})
	w := newWorld(t, frontservers.Server{Address: hangs.address})
	f, _, _ := w.start(t)
	<-asked
	w.tell(t, frontservers.Server{Address: hangs.address}, frontservers.Server{Address: a.address})
	soon(t, "a is ready", func() bool { return f.isReady(a.address) })
	select {
	case <-over:
		t.Error("a was asked when the other probe was over")
	default:
	}
	if got, err := w.ask(); got != "a" {
		t.Errorf("%q, %v", got, err)
	}
}

// Probes of a server that accepts connections and says nothing, as a stopped process does, take no more and more
// descriptors.
func TestAServerThatSaysNothing(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	var came, open atomic.Int32
	go func() {
		for {
			c, err := mute.Accept()
			if err != nil {
				return
			}
			came.Add(1)
			open.Add(1)
			go func() {
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
				open.Add(-1)
			}()
		}
	}()
	w := newWorld(t, frontservers.Server{Address: netip.MustParseAddrPort(mute.Addr().String())})
	w.hurry = 10 * time.Millisecond
	f, _, _ := w.start(t)
	soon(t, "it was asked some times", func() bool {
		select {
		case f.look <- struct{}{}:
		default:
		}
		return came.Load() > 20
	})
	w.tell(t)
	soon(t, "no connection is open", func() bool { return open.Load() == 0 })
}

// A server whose certificate another authority signed is not ready, and the log says why. It is once its authority is in
// the file; while the file cannot be used, the authority is the one from before.
func TestAuthority(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	right, err := os.ReadFile(w.config.Authority)
	if err != nil {
		t.Fatal(err)
	}
	put := func(raw []byte) {
		if err := atomicfile.Write(w.config.Authority, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other, _ := pkitest.Authority(t, "other", time.Now(), time.Hour)
	wrong := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Raw})
	put(wrong)
	var log remembered
	w.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	f, _, _ := w.start(t)
	soon(t, "the log says why", func() bool { return log.has("certificate signed by unknown authority") > 0 })
	if f.isReady(a.address) {
		t.Error("a server of another authority is ready")
	}
	put(right)
	soon(t, "the server is ready", func() bool { return f.isReady(a.address) })
	for _, spoil := range []func(){func() { put([]byte("half")) }, func() { _ = os.Remove(w.config.Authority) }} {
		spoil()
		for range 3 {
			if err := f.probe(t.Context(), a.address); err != nil {
				t.Errorf("the authority from before: %v", err)
			}
		}
	}
	put(wrong)
	soon(t, "the server is not ready", func() bool { return !f.isReady(a.address) })
}
