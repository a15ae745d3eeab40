// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"io"
	"net"
	"net/netip"
	"testing"

	"muster.dev/muster/internal/plane/frontservers"
)

// A server that accepts connections and answers nothing delays the probes of no other one.
func TestAServerThatDoesNotAnswer(t *testing.T) {
	a := newBackend(t, "a")
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	hangs := frontservers.Server{Address: netip.MustParseAddrPort(mute.Addr().String())}
	w := newWorld(t, hangs)
	f, _, _ := w.start(t)
	probe, err := mute.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = probe.Close() }()
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, probe)
		close(over)
	}()
	w.tell(t, hangs, frontservers.Server{Address: a.address})
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
