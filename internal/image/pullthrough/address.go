// SPDX-License-Identifier: Apache-2.0

package pullthrough

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Refuse decides about an address as the way out of a VPC does: by its policy, and never one of the host's own.
func Refuse(e Egress, to netip.Addr) error {
	if refusal := e.Policy.Refuse(to, e.Own); refusal != "" {
		return fmt.Errorf("the way out of the VPC refuses it (%s)", refusal)
	}
	routes, err := netlink.RouteGet(to.Unmap().AsSlice())
	switch {
	case err != nil || len(routes) != 1:
		return fmt.Errorf("the host has no route to it: %w", err)
	case routes[0].Type == unix.RTN_LOCAL:
		return errors.New("it is an address of the host")
	case routes[0].Type != unix.RTN_UNICAST:
		return errors.New("it is not an address of one host")
	}
	return nil
}
