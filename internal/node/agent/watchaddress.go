// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"muster.dev/muster/internal/node/nodecerts"
)

// address compares what the kubelet was told with what the machine has. A kubelet that chooses its address itself
// follows a change, by Node.status and a new serving certificate. A kubelet that was told an address (--node-ip) keeps
// the old address, and logs that it is gone.
func (w *watcher) address(ctx context.Context, serving nodecerts.Report) {
	want := netip.Addr{}
	if w.NodeIP != nil {
		want = w.NodeIP()
	}
	if !want.IsValid() {
		return
	}
	have, err := w.have()
	if err != nil {
		w.Log.Warn("cannot list the machine's addresses", "error", err)
		return
	}
	if !slices.Contains(have, want) {
		w.lost(ctx, want, have)
		return
	}
	w.notices.clear("Address")
	w.idle = 0
	if len(serving.Addresses) > 0 && !slices.Contains(serving.Addresses, want.String()) {
		w.notices.set("ServingAddress", fmt.Sprintf("the serving certificate is for %v and not for %s: logs and exec fail", serving.Addresses, want),
			"`muster node rotate --server` asks for another; `muster csr list` shows why there is none")
		return
	}
	w.notices.clear("ServingAddress")
}

// have are the addresses by which others may reach the machine.
func (w *watcher) have() ([]netip.Addr, error) {
	found, err := w.interfaces()
	if err != nil {
		return nil, err
	}
	var have []netip.Addr
	for _, a := range found {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().IsGlobalUnicast() {
			have = append(have, prefix.Addr().Unmap())
		}
	}
	return have, nil
}

// askAgainEvery is how many looks there are from one question for another address to the next: an administrator may
// have assigned it.
const askAgainEvery = 10

// lost acts on an address that is gone: the kubelet is given the machine's other one, if that is the machine's to use.
// That is for the cluster, or the provider, to decide, and never for the machine.
func (w *watcher) lost(ctx context.Context, want netip.Addr, have []netip.Addr) {
	text := fmt.Sprintf("the kubelet was told to use %s (--node-ip), and the machine has %v", want, have)
	const fix = "register the new address with the cluster, and the node takes it over; or give the machine its address back"
	if w.Readdress == nil || len(have) == 0 {
		w.notices.set("Address", text, fix)
		return
	}
	if w.idle > 0 {
		w.idle--
		return
	}
	w.idle = askAgainEvery
	got, err := w.Readdress(ctx, want)
	switch {
	case errors.Is(err, ErrNotAssigned):
		w.notices.set("Address", text+"; "+err.Error(), fix)
	case err != nil:
		w.notices.set("Address", text+"; the other cannot be taken over: "+err.Error(), "see what is wrong; it is tried again")
	default:
		w.notices.clear("Address")
		w.did("AddressChanged", fmt.Sprintf("the machine's address was %s and is %s; the kubelet starts again with it, and asks for another serving certificate", want, got))
		w.restart(ctx)
	}
}
