// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
)

func TestReaddress(t *testing.T) {
	old, address := netip.MustParseAddr("192.168.64.20"), netip.MustParseAddr("192.168.64.21")
	yes := func(context.Context, netip.Addr) error { return nil }
	joined := func(t *testing.T) (*world, *Host, Ledger) {
		t.Helper()
		w := newWorld(t)
		mustRun(t, w.join)
		h := w.host()
		l, err := ReadLedger(w.root)
		if err != nil {
			t.Fatal(err)
		}
		content := `ARGS="--a --node-ip=192.168.64.20 --b=--node-ip=192.168.64.200"` + "\n"
		if err := h.replaceFile(&l, artifact{path: kubeletEnvironment, mode: 0o644, content: []byte(content)}); err != nil {
			t.Fatal(err)
		}
		if err := h.save(l); err != nil {
			t.Fatal(err)
		}
		return w, h, l
	}
	arguments := func(w *world) string {
		raw, err := os.ReadFile(w.at(kubeletEnvironment))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	t.Run("assigned", func(t *testing.T) {
		w, h, l := joined(t)
		if err := h.readdress(t.Context(), l, old, address, yes); err != nil {
			t.Fatal(err)
		}
		if got := arguments(w); got != `ARGS="--a --node-ip=192.168.64.21 --b=--node-ip=192.168.64.200"`+"\n" {
			t.Errorf("the arguments are %s", got)
		}
		mustRun(t, w.leave) // it is muster's own change
		if strings.Contains(w.said(), "somebody has changed") {
			t.Errorf("said:\n%s", w.said())
		}
	})
	t.Run("not assigned", func(t *testing.T) {
		w, h, l := joined(t)
		before := arguments(w)
		no := errors.New("no")
		if err := h.readdress(t.Context(), l, old, address, func(context.Context, netip.Addr) error { return no }); !errors.Is(err, no) || arguments(w) != before {
			t.Errorf("error %v; the arguments are %s", err, arguments(w))
		}
		if err := h.readdress(t.Context(), l, old, old, yes); !errors.Is(err, ErrSameAddress) {
			t.Errorf("no other address: %v", err)
		}
	})
	t.Run("changed by somebody", func(t *testing.T) {
		w, h, l := joined(t)
		w.write(kubeletEnvironment, "ARGS=--node-ip=192.168.64.20 --mine\n")
		if err := h.readdress(t.Context(), l, old, address, yes); err == nil || !strings.Contains(err.Error(), "is not as muster join wrote it") {
			t.Errorf("error %v", err)
		}
		if got := h.NodeIP(); got != old {
			t.Errorf("the address is %s", got)
		}
	})
	if got := newWorld(t).host().NodeIP(); got.IsValid() {
		t.Errorf("a host that has not joined has %s", got)
	}
}
