// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/network/egresspolicy"
)

// refusedNoRoute is of an address that the host has no route to, or of which it cannot say what it is.
const refusedNoRoute egresspolicy.Refusal = "no-route"

// settings are what is let through as of now.
type settings struct {
	policy egresspolicy.Policy
	own    []netip.Prefix
}

// gate decides what may be dialled.
type gate struct {
	// read reads the settings.
	read func() (egresspolicy.Policy, []netip.Prefix, error)
	// kind is the kind of the host's route to an address (RTN_UNICAST, RTN_LOCAL and so on).
	kind func(netip.Addr) (int, error)
	log  *slog.Logger

	now  atomic.Pointer[settings]
	said string // the last error logged
}

// refuse decides about an address that is about to be dialled.
func (g *gate) refuse(destination netip.Addr) egresspolicy.Refusal {
	now := g.now.Load()
	if now == nil {
		return egresspolicy.RefusedClosed
	}
	if refusal := now.policy.Refuse(destination, now.own); refusal != "" {
		return refusal
	}
	kind, err := g.kind(destination.Unmap())
	switch {
	case err != nil:
		return refusedNoRoute
	case kind == unix.RTN_LOCAL:
		return egresspolicy.RefusedHost
	case kind != unix.RTN_UNICAST:
		return egresspolicy.RefusedReserved
	}
	return ""
}

// look reads the settings again, and reports whether they changed. If a file cannot be read, the settings stay as they
// were.
func (g *gate) look() (changed bool) {
	policy, own, err := g.read()
	if err != nil {
		if err.Error() != g.said {
			g.log.Error("what may leave the VPC may be out of date", "error", err)
		}
		g.said = err.Error()
		return false
	}
	g.said = ""
	before := g.now.Swap(&settings{policy, own})
	return before != nil && (!before.policy.Equal(policy) || !equal(before.own, own))
}

func equal(a, b []netip.Prefix) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// lookAgain is how often settings are read: well below the second in which a change has to be in force
// (docs/promises.md).
const lookAgain = 250 * time.Millisecond

// follow looks again until the context ends, and says when the settings changed.
func (g *gate) follow(ctx context.Context, changed func()) {
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if g.look() {
				changed()
			}
		}
	}
}

// routeKind asks the kernel about the host's route to an address.
func routeKind(handle *netlink.Handle) func(netip.Addr) (int, error) {
	return func(address netip.Addr) (int, error) {
		routes, err := handle.RouteGet(address.AsSlice())
		if err != nil {
			return 0, err
		}
		if len(routes) != 1 {
			return 0, unix.ENETUNREACH
		}
		return routes[0].Type, nil
	}
}
