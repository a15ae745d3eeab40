// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/vishvananda/netlink"

	"muster.dev/muster/internal/network/securitygroup"
	"muster.dev/muster/internal/platform/atomicfile"
)

// Interface is a machine's place in the VPC: its address, with the security groups that decide what comes to it and
// goes from it.
type Interface struct {
	// Machine is the machine's id. Addresses are used again: what is said of one machine is not said of the next one
	// with its address.
	Machine string     `json:"machine"`
	Address netip.Addr `json:"address"`
	// PodRange is the range of a subnet that its pods have their addresses of, and that leads to the machine; not valid
	// if they have none.
	PodRange netip.Prefix `json:"podRange,omitzero"`
	// SecurityGroups are ids. A machine without a group gets and sends nothing but what the VPC itself serves:
	// metadata, names, STS and IAM.
	SecurityGroups []string `json:"securityGroups,omitempty"`
}

// security is what is kept on disk of the security groups of a VPC: what is in force after the namespace was made anew.
type security struct {
	Version    int                   `json:"version"`
	Groups     []securitygroup.Group `json:"groups,omitempty"`
	Interfaces []Interface           `json:"interfaces,omitempty"`
}

// securityFile is below a VPC's directory, securityVersion the version of its format.
const (
	securityFile    = "security.json"
	securityVersion = 1
)

func (n *Network) securityPath() string { return filepath.Join(n.dir, securityFile) }

func (n *Network) readSecurity() (security, error) {
	raw, err := os.ReadFile(n.securityPath())
	if errors.Is(err, fs.ErrNotExist) {
		return security{Version: securityVersion}, nil
	}
	if err != nil {
		return security{}, fmt.Errorf("reading security groups of the VPC: %w", err)
	}
	var s security
	if err := json.Unmarshal(raw, &s); err != nil {
		return security{}, fmt.Errorf("reading %s: %w: remove the file, and the service writes it again", n.securityPath(), err)
	}
	if s.Version != securityVersion {
		return security{}, fmt.Errorf("reading %s: version is %d, want %d", n.securityPath(), s.Version, securityVersion)
	}
	return s, nil
}

// changeSecurity changes what is kept. The lock is held.
func (n *Network) changeSecurity(change func(*security) error) error {
	before, err := n.readSecurity()
	if err != nil {
		return err
	}
	was, err := json.Marshal(before)
	if err != nil {
		return fmt.Errorf("encoding security groups of the VPC: %w", err)
	}
	if err := change(&before); err != nil {
		return err
	}
	slices.SortFunc(before.Interfaces, func(a, b Interface) int { return a.Address.Compare(b.Address) })
	is, err := json.Marshal(before)
	if err != nil {
		return fmt.Errorf("encoding security groups of the VPC: %w", err)
	}
	if string(was) == string(is) {
		return nil
	}
	return atomicfile.Write(n.securityPath(), append(is, '\n'), 0o600)
}

// SetSecurity replaces the security groups of the VPC, says which of them machines are in, and puts that in force in
// one step: a packet meets the rules as they were or as they are. Connections that were let through go on. Where there
// is no namespace, since machines are only simulated there, it is kept and no more. Machines that are not named keep
// their groups.
func (n *Network) SetSecurity(groups []securitygroup.Group, interfaces []Interface) error {
	unlock, err := n.lock()
	if err != nil {
		return err
	}
	defer unlock()
	there, err := n.attachedAddresses()
	if err != nil {
		return err
	}
	err = n.changeSecurity(func(s *security) error {
		s.Groups = groups
		for _, wanted := range interfaces {
			if !wanted.PodRange.IsValid() || !within(wanted.PodRange, n.cidr) {
				wanted.PodRange = netip.Prefix{} // the range of the pods of a cluster
			}
			at := slices.IndexFunc(s.Interfaces, func(i Interface) bool { return i.Address == wanted.Address })
			switch {
			case at < 0 && there[wanted.Address]: // by an earlier version
				s.Interfaces = append(s.Interfaces, wanted)
			case at >= 0 && s.Interfaces[at].Machine == wanted.Machine:
				if known := s.Interfaces[at].PodRange; known.IsValid() { // it was attached with that
					wanted.PodRange = known
				}
				s.Interfaces[at] = wanted
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("setting security groups of the VPC: %w", err)
	}
	return n.enforce()
}

// SecurityGroups are the groups that a machine is in.
func (n *Network) SecurityGroups(machine string) ([]string, error) {
	s, err := n.readSecurity()
	if err != nil {
		return nil, err
	}
	for _, i := range s.Interfaces {
		if i.Machine == machine {
			return i.SecurityGroups, nil
		}
	}
	return nil, nil
}

// podRangeOf is the range of the pods of the machine with an address, as it was attached.
func (n *Network) podRangeOf(address netip.Addr) (netip.Prefix, error) {
	s, err := n.readSecurity()
	if err != nil {
		return netip.Prefix{}, err
	}
	for _, i := range s.Interfaces {
		if i.Address == address {
			return i.PodRange, nil
		}
	}
	return netip.Prefix{}, nil
}

// apart checks that neither a machine's address nor the range of its pods is in that of another machine's pods, and
// that no other machine, endpoint or load balancer has an address in its range. A range is a part of one subnet, the
// machine's or another.
func (n *Network) apart(own Interface) error {
	s, err := n.readSecurity()
	if err != nil {
		return err
	}
	taken, err := n.Taken()
	if err != nil {
		return err
	}
	pods := own.PodRange
	for _, other := range s.Interfaces {
		switch {
		case other.Machine == own.Machine:
			continue
		case other.PodRange.IsValid() && (other.PodRange.Contains(own.Address) || pods.IsValid() && other.PodRange.Overlaps(pods)):
			return fmt.Errorf("the address %s, or %s of its pods, is among those of the pods of machine %s", own.Address, pods, other.Machine)
		}
		taken = append(taken, other.Address)
	}
	if !pods.IsValid() {
		return nil
	}
	subnet, err := n.subnetOf(pods.Addr())
	switch {
	case err != nil:
		return fmt.Errorf("%s for pods: %w", pods, err)
	case !within(pods, subnet) || pods.Masked() != pods || pods.Overlaps(netip.PrefixFrom(subnet.Masked().Addr(), 30)) || slices.ContainsFunc(n.own(), pods.Contains):
		return fmt.Errorf("%s for pods is not a part of the subnet %s that machines may have", pods, subnet)
	}
	for _, address := range append(taken, own.Address) {
		if pods.Contains(address) {
			return fmt.Errorf("%s for pods has the address %s, which somebody has", pods, address)
		}
	}
	return nil
}

// admit keeps which groups a machine is in, and puts that in force before the machine has its link.
func (n *Network) admit(own Interface) error {
	unlock, err := n.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := n.apart(own); err != nil {
		return err
	}
	err = n.changeSecurity(func(s *security) error {
		s.Interfaces = slices.DeleteFunc(s.Interfaces, func(i Interface) bool { return i.Address == own.Address })
		s.Interfaces = append(s.Interfaces, own)
		return nil
	})
	if err != nil {
		return err
	}
	return n.enforce()
}

// dismiss forgets which groups the machine with an address was in. Rules that name a link that is gone mean nothing, so
// they stay in force until the next ones are.
func (n *Network) dismiss(address netip.Addr) error {
	unlock, err := n.lock()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	return n.changeSecurity(func(s *security) error {
		s.Interfaces = slices.DeleteFunc(s.Interfaces, func(i Interface) bool { return i.Address == address })
		return nil
	})
}

// attachedAddresses are those that machines have links for.
func (n *Network) attachedAddresses() (map[netip.Addr]bool, error) {
	there := map[netip.Addr]bool{}
	held, err := isNamespace(n.mount())
	if err != nil || !held {
		return there, err
	}
	all, err := n.Attached()
	for _, a := range all {
		there[a.Address()] = true
	}
	return there, err
}

// ruleset is the one that is to be in force, by what is on disk.
func (n *Network) ruleset() (string, error) {
	current, err := n.reload() // another process may have changed the subnets
	if err != nil {
		return "", err
	}
	kept, err := current.readSecurity()
	if err != nil {
		return "", err
	}
	endpoints, err := current.Endpoints()
	if err != nil {
		return "", err
	}
	state := securitygroup.State{CIDR: current.cidr, Own: current.own(), Routers: routersOf(current), Groups: kept.Groups, WayOut: egressLink}
	taken := map[netip.Addr]bool{}
	for _, e := range endpoints {
		for _, address := range e.Addresses {
			taken[address] = true
			state.Members = append(state.Members, securitygroup.Member{Address: address, Groups: e.SecurityGroups})
		}
	}
	balancers, err := current.Balancers()
	if err != nil {
		return "", err
	}
	if len(balancers) > 0 {
		state.Groups = append(slices.Clone(state.Groups), groupOfBalancers())
	}
	for _, m := range balancerMembers(balancers, endpoints) {
		taken[m.Address] = true
		state.Members = append(state.Members, m)
	}
	for _, i := range kept.Interfaces {
		if !taken[i.Address] { // left by a machine that is gone
			state.Members = append(state.Members, securitygroup.Member{Link: attachmentOf(i.Address).Link(), Address: i.Address, Groups: i.SecurityGroups})
		}
	}
	return securitygroup.Ruleset(state)
}

// enforce puts in force what is on disk. The lock is held. It does nothing if that is in force already, or if there is
// no namespace: rules are put in force when it is made.
func (n *Network) enforce() error {
	held, err := isNamespace(n.mount())
	if err != nil || !held {
		return err
	}
	wanted, err := n.ruleset()
	if err != nil {
		return err
	}
	namespace, err := n.Open()
	if err != nil {
		return err
	}
	defer func() { _ = namespace.Close() }()
	err = withHandle(namespace, func(h *netlink.Handle) error { return putInForce(h, namespace, wanted) })
	if err != nil {
		return fmt.Errorf("putting security groups in force: %w", err)
	}
	return nil
}
