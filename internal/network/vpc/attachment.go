// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	machineLink = "eth0"
	linkPrefix  = "vm-"
)

// Attachment connects the machine with an address to the network of its VPC. It is a pair of links: the VPC's end is in
// the namespace of the VPC and the machine's end, eth0, in that of the machine, so that neither is ever seen on the
// host. This file alone knows that it is a pair of links; the rest of the package asks an attachment for the VPC's end,
// to which it fixes the address.
type Attachment struct{ address netip.Addr }

// attachmentOf is the attachment of the machine with an address.
func attachmentOf(address netip.Addr) Attachment { return Attachment{address} }

// attachmentNamed reads a name that Link made; false for every other name of a link.
func attachmentNamed(link string) (Attachment, bool) {
	digits, ok := strings.CutPrefix(link, linkPrefix)
	if !ok {
		return Attachment{}, false
	}
	raw, err := hex.DecodeString(digits)
	if err != nil || len(raw) != net.IPv4len {
		return Attachment{}, false
	}
	address, ok := netip.AddrFromSlice(raw)
	return Attachment{address}, ok
}

// Address is the machine's in the VPC.
func (a Attachment) Address() netip.Addr { return a.address }

// Link names the VPC's end by the address of the machine, which is unique in the VPC.
func (a Attachment) Link() string { return fmt.Sprintf("%s%x", linkPrefix, a.address.As4()) }

// find looks for the VPC's end; the handle is one in the namespace of the VPC. See isNotFound.
func (a Attachment) find(h *netlink.Handle) (netlink.Link, error) {
	link, err := h.LinkByName(a.Link())
	if err != nil {
		return nil, fmt.Errorf("finding link %s: %w", a.Link(), err)
	}
	return link, nil
}

// plug makes the pair, one end in each namespace, and returns the VPC's end. The VPC's ends have no addresses, and all
// the same hardware address, the router's: each is alone with its machine.
func (a Attachment) plug(h *netlink.Handle, machine *os.File, router net.HardwareAddr) (netlink.Link, error) {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = a.Link()
	attributes.HardwareAddr = router
	err := h.LinkAdd(&netlink.Veth{
		LinkAttrs:        attributes,
		PeerName:         machineLink,
		PeerHardwareAddr: MAC(a.address),
		PeerNamespace:    netlink.NsFd(machine.Fd()),
	})
	if err != nil {
		return nil, fmt.Errorf("making link %s: %w", attributes.Name, err)
	}
	return a.find(h)
}

// machineEnd sets the machine's end up and returns it; the handle is one in the namespace of the machine.
func (a Attachment) machineEnd(h *netlink.Handle) (netlink.Link, error) {
	if err := up(h, machineLink); err != nil {
		return nil, err
	}
	link, err := h.LinkByName(machineLink)
	if err != nil {
		return nil, fmt.Errorf("finding link %s: %w", machineLink, err)
	}
	return link, nil
}

// unplug removes both ends. A missing pair is not an error.
func (a Attachment) unplug(h *netlink.Handle) error {
	link, err := a.find(h)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := h.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("removing link %s: %w", a.Link(), err)
	}
	return nil
}

// attachments are the attachments whose ends are in the namespace of a VPC.
func attachments(h *netlink.Handle) ([]Attachment, error) {
	links, err := h.LinkList()
	if err != nil {
		return nil, fmt.Errorf("listing attached links: %w", err)
	}
	var all []Attachment
	for _, link := range links {
		if a, ok := attachmentNamed(link.Attrs().Name); ok {
			all = append(all, a)
		}
	}
	return all, nil
}

func isNotFound(err error) bool {
	var notFound netlink.LinkNotFoundError
	return errors.As(err, &notFound)
}
