// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/certificates/policy"
)

// LeftOut is a Node that is in no list, with why.
type LeftOut struct{ Node, Why string }

// ListOfNodes writes a list of machines, as ReadList reads it, from the existing Nodes: a beginning for a person to
// look through. The API server vouches only for the Nodes' names; each node reports its own addresses, host names and
// UUIDs. So a Node is left out as a whole if it reports anything that cannot be the address, name or ID of a machine.
// Nodes that report the same value are all left out, unless the value is the name of one of them: that Node stays.
func ListOfNodes(nodes []corev1.Node) (list []byte, leftOut []LeftOut, err error) {
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	ids := idsOf(nodes)
	var machines []policy.Machine
	for i, n := range nodes {
		m, why := machineOfNode(n, ids[i])
		if why != "" {
			leftOut = append(leftOut, LeftOut{n.Name, why})
			continue
		}
		machines = append(machines, m)
	}
	machines, contested := uncontested(machines)
	leftOut = append(leftOut, contested...)
	if list, err = writeList(machines); err != nil {
		return nil, nil, err
	}
	// The list must read as it was meant, whatever stood in the Nodes.
	again, err := ReadList(list)
	if err != nil {
		return nil, nil, fmt.Errorf("the list cannot be read again: %w", err)
	}
	twice, err := writeList(again)
	if err != nil || len(again) != len(machines) || !bytes.Equal(list, twice) {
		return nil, nil, errors.Join(errors.New("the list says something else when it is read again"), err)
	}
	return list, leftOut, nil
}

// idsOf are the IDs of the machines: the hardware's own UUID, or where several have the same, as containers of one host
// do, the ID that the operating system drew when it was installed.
func idsOf(nodes []corev1.Node) []string {
	many := map[string]int{}
	for _, n := range nodes {
		many[n.Status.NodeInfo.SystemUUID]++
	}
	ids := make([]string, 0, len(nodes))
	for _, n := range nodes {
		id := n.Status.NodeInfo.SystemUUID
		if id == "" || many[id] > 1 {
			id = n.Status.NodeInfo.MachineID
		}
		ids = append(ids, id)
	}
	return ids
}

// machineOfNode reads what a Node says, or says why it cannot be a machine.
func machineOfNode(n corev1.Node, id string) (m policy.Machine, why string) {
	entry := listed{ID: id, NodeName: n.Name}
	for _, a := range n.Status.Addresses {
		_, isIP := canonicalAddress(a.Address) // of a host's name, too: kubelets ask for it as an address then
		switch a.Type {
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			entry.Addresses = append(entry.Addresses, a.Address)
		case corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS:
			switch {
			case isIP:
				entry.Addresses = append(entry.Addresses, a.Address)
			case canonicalName(a.Address) != n.Name:
				entry.Names = append(entry.Names, strings.TrimSuffix(a.Address, "."))
			}
		default:
			return m, fmt.Sprintf("%q is not a kind of address", clipped(string(a.Type)))
		}
	}
	if id == "" {
		return m, "it has neither a systemUUID nor a machineID of its own to tell it from the machine that replaces it"
	}
	c := checker{seen: map[string]string{}}
	if m = c.machine("", entry); len(c.problems) > 0 {
		_, why, _ = strings.Cut(c.problems[0].Text, ": ")
		return m, why
	}
	return m, ""
}

// uncontested returns the machines none of whose names, addresses and IDs another machine claims. A node's own name is
// its own, even if another machine claims it.
func uncontested(machines []policy.Machine) (left []policy.Machine, leftOut []LeftOut) {
	owners, claims := map[string]string{}, map[string][]string{}
	for _, m := range machines {
		owners[m.NodeName] = m.NodeName
		for _, value := range append(namesOf(m), "the ID "+m.ID) {
			claims[value] = append(claims[value], m.NodeName)
		}
	}
	for _, m := range machines {
		why := ""
		for _, value := range append(namesOf(m), "the ID "+m.ID) {
			others := slices.DeleteFunc(slices.Clone(claims[value]), func(node string) bool { return node == m.NodeName })
			if len(others) > 0 && owners[value] != m.NodeName {
				why = fmt.Sprintf("it says that it has %s, and so does node %s", strings.TrimPrefix(value, "the "), others[0])
				break
			}
		}
		if why != "" {
			leftOut = append(leftOut, LeftOut{m.NodeName, why})
			continue
		}
		left = append(left, m)
	}
	return left, leftOut
}
