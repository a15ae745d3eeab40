// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"muster.dev/muster/internal/policy"
	"muster.dev/muster/internal/strictyaml"
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
	Group     string   `json:"group,omitempty"`
}

// ReadList reads a list of machines whole, or tells all that is wrong with it.
func ReadList(data []byte) ([]policy.Machine, error) {
	if len(data) > maxList {
		return nil, fmt.Errorf("the list has more than %d MiB", maxList>>20)
	}
	if manyDocuments(data) {
		return nil, errors.New("the list has several YAML documents; make it one")
	}
	var l machineList
	text, problems := strictyaml.ToJSON(data)
	if len(problems) == 0 {
		problems, _ = strictyaml.FromJSON(text, &l)
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("reading the list: %s", some(problems))
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
	return out, c.err()
}

// manyDocuments tells whether there is a document after the first, which the reader of YAML would leave out.
func manyDocuments(data []byte) bool {
	begun := false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		marker := line == "---" || line == "..." || strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "---\t") || strings.HasPrefix(line, "... ")
		if marker && begun {
			return true
		}
		begun = begun || marker || strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "%")
	}
	return false
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
	problems []string
}

func (c *checker) problem(path, format string, args ...any) {
	c.problems = append(c.problems, path+": "+fmt.Sprintf(format, args...))
}

func (c *checker) err() error {
	if len(c.problems) == 0 {
		return nil
	}
	return errors.New(some(c.problems))
}

// once refuses what another machine has. One machine, whose path is own, may repeat its names and addresses, as a node's status does.
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
	if len(m.Names) > maxOfMachine || len(m.Addresses) > maxOfMachine {
		c.problem(path, "it has %d names and %d addresses, and may have %d of each", len(m.Names), len(m.Addresses), maxOfMachine)
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
	return out
}

// validName tells whether a text may name a node or a host.
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
