// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
)

// kubeletEnvironment has the kubelet's arguments; see package render.
const kubeletEnvironment = "/etc/eks/kubelet/environment"

// nodeIPArgument is the one that says which address the kubelet uses. An address needs no quotes, so whatever surrounds
// it ends it.
var nodeIPArgument = regexp.MustCompile(`--node-ip=([0-9A-Fa-f.:]+)`)

// NodeIP is the address that the kubelet is told to use; it is not valid if it is told none.
func (h *Host) NodeIP() netip.Addr {
	raw, err := os.ReadFile(h.disk.at(kubeletEnvironment))
	if err != nil {
		return netip.Addr{}
	}
	found := nodeIPArgument.FindAllSubmatch(raw, -1)
	if len(found) == 0 {
		return netip.Addr{}
	}
	address, err := netip.ParseAddr(string(found[len(found)-1][1])) // the last wins
	if err != nil {
		return netip.Addr{}
	}
	return address
}

// ErrSameAddress means that the host reaches its cluster by no other address than before.
var ErrSameAddress = errors.New("no other address of the host leads to the API server")

// Readdress tells the kubelet to use the address by which the host reaches the cluster by now, in place of one that it
// lost, if assigned says that it is this host's to use. The kubelet has to be restarted for that.
func (h *Host) Readdress(ctx context.Context, old netip.Addr, assigned func(context.Context, netip.Addr) error) (netip.Addr, error) {
	unlock, err := h.lock()
	if err != nil {
		return netip.Addr{}, err
	}
	defer unlock()
	ledger, err := ReadLedger(h.Root)
	if err != nil {
		return netip.Addr{}, err
	}
	address, err := addressTowards(ctx, ledger.Endpoint)
	if err != nil {
		return netip.Addr{}, err
	}
	return address, h.readdress(ctx, ledger, old, address, assigned)
}

func (h *Host) readdress(ctx context.Context, ledger Ledger, old, address netip.Addr, assigned func(context.Context, netip.Addr) error) error {
	if old == address {
		return ErrSameAddress
	}
	raw, err := os.ReadFile(h.disk.at(kubeletEnvironment))
	if err != nil {
		return fmt.Errorf("reading the kubelet's arguments: %w", err)
	}
	replaced, err := ledger.replaced(h.disk)
	if err != nil {
		return err
	}
	if !ledger.lists(kubeletEnvironment) || slices.Contains(replaced, kubeletEnvironment) {
		return fmt.Errorf("%s is not as muster join wrote it: change --node-ip=%s in it to --node-ip=%s, and run systemctl restart kubelet", kubeletEnvironment, old, address)
	}
	if err := assigned(ctx, address); err != nil {
		return err
	}
	content := nodeIPArgument.ReplaceAllFunc(raw, func(argument []byte) []byte {
		if string(argument) == "--node-ip="+old.String() {
			return []byte("--node-ip=" + address.String())
		}
		return argument
	})
	if err := h.replaceFile(&ledger, artifact{path: kubeletEnvironment, mode: 0o644, content: content}); err != nil {
		return err
	}
	return h.save(ledger)
}
