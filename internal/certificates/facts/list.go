// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/strictyaml"
)

// Limits of a static list of machines. They are far above what a cluster has and far below what hurts.
const (
	maxList      = 16 << 20
	maxMachines  = 50_000
	maxOfMachine = 64 // names, and addresses, of one machine
	maxText      = 253
	maxProblems  = 10 // that are told
)

// machineList is a static list of machines, in YAML.
type machineList struct {
	Machines []listed `json:"machines"`
}

type listed struct {
	ID        string   `json:"id"`
	NodeName  string   `json:"nodeName"`
	Names     []string `json:"names,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	// AddressRanges are networks such as 10.0.3.0/24. The machine may have any address in them.
	AddressRanges []string `json:"addressRanges,omitempty"`
	Group         string   `json:"group,omitempty"`
	// Created is a time as RFC 3339 has it.
	Created string `json:"created,omitempty"`
}

// ReadList reads a list of machines whole, or tells all that is wrong with it.
func ReadList(data []byte) ([]policy.Machine, error) {
	if len(data) > maxList {
		return nil, fmt.Errorf("the list has more than %d MiB", maxList>>20)
	}
	documents := strictyaml.Split(data)
	if len(documents) > 1 {
		return nil, errors.New("the list has several YAML documents; make it one")
	}
	var l machineList
	d := &strictyaml.Document{}
	if len(documents) == 1 {
		d = documents[0]
		text, wrong := d.JSON()
		if text != nil {
			more, _ := strictyaml.Decode(text, &l)
			wrong = append(wrong, more...)
		}
		if len(wrong) > 0 {
			return nil, fmt.Errorf("reading the list: %s", some(d.Lines(wrong)))
		}
	}
	switch {
	case l.Machines == nil: // an empty file is rather half a file than no machines
		return nil, errors.New("the list has no key machines; for none write machines: []")
	case len(l.Machines) > maxMachines:
		return nil, fmt.Errorf("the list has %d machines, more than %d", len(l.Machines), maxMachines)
	}
	c := checker{seen: map[string]string{}}
	out := make([]policy.Machine, 0, len(l.Machines))
	for i, m := range l.Machines {
		out = append(out, c.machine(fmt.Sprintf("machines[%d]", i), m))
	}
	c.overlaps(out)
	if len(c.problems) > 0 {
		return nil, errors.New(some(d.Lines(c.problems)))
	}
	return out, nil
}

// some are the first of many problems.
func some(problems []string) string {
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(problems, "; ")
}

// checker collects problems, and where each value was seen first.
type checker struct {
	seen     map[string]string
	problems []strictyaml.Wrong
}

func (c *checker) problem(path, format string, args ...any) {
	c.problems = append(c.problems, strictyaml.Wrong{Path: path, Text: path + ": " + fmt.Sprintf(format, args...)})
}

// once refuses what another machine has. One machine, whose path is own, may repeat its names and addresses, as a
// node's status does.
func (c *checker) once(kind, value, path, own string) {
	key := kind + " " + value
	first, ok := c.seen[key]
	if ok && !strings.HasPrefix(first, own+".") {
		c.problem(path, "%q is at %s, too", value, first)
	}
	if !ok {
		c.seen[key] = path
	}
}

func (c *checker) machine(path string, m listed) policy.Machine {
	out := policy.Machine{ID: m.ID, NodeName: m.NodeName, Group: m.Group}
	if m.ID == "" || !printable(m.ID) {
		c.problem(path+".id", "%q is not an ID: up to %d letters, digits and signs without spaces", clipped(m.ID), maxText)
	} else {
		c.once("id", m.ID, path+".id", path)
	}
	if validName(m.NodeName) {
		c.once("name", m.NodeName, path+".nodeName", path)
	} else {
		c.problem(path+".nodeName", "%q is not a node's name: lower-case letters, digits, - and .", clipped(m.NodeName))
	}
	if !printable(m.Group) {
		c.problem(path+".group", "%q is not a group: up to %d letters, digits and signs without spaces", clipped(m.Group), maxText)
	}
	if created, err := time.Parse(time.RFC3339, m.Created); err == nil {
		out.Created = created
	} else if m.Created != "" {
		c.problem(path+".created", "%q is not a time such as 2026-11-22T10:00:00Z", clipped(m.Created))
	}
	if max(len(m.Names), len(m.Addresses), len(m.AddressRanges)) > maxOfMachine {
		c.problem(path, "it has %d names, %d addresses and %d ranges, and may have %d of each", len(m.Names), len(m.Addresses), len(m.AddressRanges), maxOfMachine)
		return out
	}
	for i, n := range m.Names {
		at := fmt.Sprintf("%s.names[%d]", path, i)
		n = strings.ToLower(n) // a hostname may have capitals, and means the same
		if _, err := netip.ParseAddr(n); err == nil || !validName(n) {
			c.problem(at, "%q is not a DNS name: letters, digits, - and ., no * and no . at the end", clipped(n))
			continue
		}
		c.once("name", n, at, path)
		if !slices.Contains(out.Names, n) {
			out.Names = append(out.Names, n)
		}
	}
	for i, text := range m.Addresses {
		at := fmt.Sprintf("%s.addresses[%d]", path, i)
		ip, ok := canonicalAddress(text)
		if !ok || ip.IsUnspecified() || ip.IsLoopback() || ip.IsMulticast() {
			c.problem(at, "%q is not the address of a machine", clipped(text))
			continue
		}
		c.once("name", ip.String(), at, path) // a node's name may be its address
		if !slices.Contains(out.Addresses, ip) {
			out.Addresses = append(out.Addresses, ip)
		}
	}
	for i, text := range m.AddressRanges {
		in, wrong := readRange(text)
		switch {
		case wrong != "":
			c.problem(fmt.Sprintf("%s.addressRanges[%d]", path, i), "%s", wrong)
		case !slices.Contains(out.Ranges, in):
			out.Ranges = append(out.Ranges, in)
		}
	}
	return out
}

// overlaps refuses a range that has an address of another machine in it: that machine's certificate would be the
// range's, too, as soon as the address is gone from the list.
func (c *checker) overlaps(machines []policy.Machine) {
	var all ranges
	for i, m := range machines {
		all.add(int32(i), m.Ranges) // there are at most maxMachines
	}
	for i, m := range machines {
		addresses := m.Addresses
		if ip, err := netip.ParseAddr(m.NodeName); err == nil {
			addresses = append(slices.Clone(addresses), ip)
		}
		for _, a := range addresses {
			if place, in, ok := all.other(a, int32(i)); ok {
				path := fmt.Sprintf("machines[%d].addressRanges[%d]", place, max(0, slices.Index(machines[place].Ranges, in)))
				c.problem(path, "%s has the address %s of machine %s in it; leave it out, with several narrower ranges", in, a, m.ID)
			}
		}
	}
}

// validName reports whether a text may name a node or a host.
func validName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

func printable(text string) bool {
	return len(text) <= maxText && !strings.ContainsFunc(text, func(r rune) bool {
		return r == unicode.ReplacementChar || !unicode.IsPrint(r) || unicode.IsSpace(r)
	})
}

func clipped(text string) string {
	if len(text) > maxText {
		return text[:maxText] + "…"
	}
	return text
}
