// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

func TestNamesAreCanonical(t *testing.T) {
	for _, name := range []string{
		"", "*", "*.ec2.internal", "a.*.b", "a..b", ".a", "a b", "a_b",
		"-a", "a-", "xn--a", "xn--", "xn--abc-", "a.xn--zz--zz", "xn--lte-2ha9k", "10.0.0.1", "1", "a.1", "a.0x7f", "a.0x", "1.2.3", "0x7f000001", "192.168.64.11", "::1", "a/b", "a:b", "a..", ".", "*.", "10.0.0.1.", "\u212a8s", "a\x00b", "höst",
		"a12345678901234567890123456789012345678901234567890123456789012345.b",
		strings.Repeat("a.", 127) + "a",
	} {
		t.Run(name, func(t *testing.T) {
			w := serving(t, addrA)
			w.object.Spec.Request = rawNames(t, pkitest.GeneralName{Tag: 2, Value: []byte(name)})
			d := w.decide()
			// Names other than ASCII do not get past the reader.
			if d.Verdict != decision.Deny || d.Rule != "name-canonical" && d.Rule != "shape" {
				t.Errorf("%s", d)
			}
		})
	}
}

// An operator may write names as people do.
func TestReservedNamesInAnyCase(t *testing.T) {
	w := serving(t, "api.example")
	w.facts.NodeMachine.Value.Names = []string{"api.example"}
	w.facts.Owners["api.example"] = know([]string{machineA})
	w.facts.Nodes["api.example"] = know(false)
	w.must(t, decision.Approve, "")
	for _, name := range []string{"api.example", "API.Example", "api.example."} {
		w.policy.ReservedNames = []string{name}
		w.must(t, decision.Deny, "name-reserved")
	}
	w.policy = policy.Policy{ClusterDomain: "Example."}
	w.must(t, decision.Deny, "name-reserved")
}

func TestNamesThatAreCanonical(t *testing.T) {
	for _, name := range []string{
		"a", "a.b", "1a", "a1.2b", "0xyz", "a--b", "1.example", "A.Example", "NODE-1.corp.EXAMPLE", "a.xn--p1ai", "A.XN--P1AI", "xn--80ak6aa92e.com", "xn--kln-sna.example",
	} {
		t.Run(name, func(t *testing.T) {
			own := strings.ToLower(name)
			mine := func(w *world) {
				w.facts.NodeMachine.Value.Names = []string{own}
				w.facts.Owners[own], w.facts.Nodes[own] = know([]string{machineA}), know(false)
			}
			another := func(w *world) { w.facts.Owners[own] = know([]string{machineB}) }
			run(t, []namedCase{
				{"its own", serving(t, name), mine, decision.Approve, ""},
				{"nobody's", serving(t, name), nil, decision.Wait, "name-assigned"},
				{"another machine's", serving(t, name), another, decision.Deny, "name-assigned"},
				{"its own, reserved", serving(t, name), all(mine, func(w *world) { w.policy.ReservedNames = []string{own} }), decision.Deny, "name-reserved"},
				{"of an application", person(t, appServing, user("a"), name), func(w *world) {
					w.facts.Owners[own], w.facts.Nodes[own] = know([]string{}), know(false)
				}, decision.Approve, ""},
				{"of an application, but a machine's", person(t, appServing, user("a"), name), all(mine, another), decision.Deny, "name-of-machine"},
				{"of an application, but a node's", person(t, appServing, user("a"), name), all(mine, func(w *world) {
					w.facts.Owners[own], w.facts.Nodes[own] = know([]string{}), know(true)
				}), decision.Deny, "name-of-machine"},
				{"with a dot at the end", serving(t, name+"."), mine, decision.Wait, "name-canonical"},
				{"with a dot at the end, another machine's", serving(t, name+"."), another, decision.Deny, "name-assigned"},
				{"of an application, with a dot at the end", person(t, appServing, user("a"), name+"."), mine, decision.Deny, "name-canonical"},
			})
		})
	}
}

// Lookups of a name are for the form in which it is compared, once.
func TestFactsAreAboutCanonicalNames(t *testing.T) {
	w := serving(t, "A.Example", "a.example.", strings.ToUpper(nodeA), "b.example")
	q := policy.Ask(w.policy, policy.Read(&w.object, w.policy))
	if want := []string{"a.example", nodeA, "b.example"}; !slices.Equal(q.Names, want) {
		t.Errorf("asked who has %q", q.Names)
	}
	if want := []string{"a.example", "b.example"}; !slices.Equal(q.Nodes, want) {
		t.Errorf("asked for nodes %q", q.Nodes)
	}
}

// Reserved names and addresses stay refused when the inventory assigns them to the very machine that asks.
func TestReservedIsRefusedWhateverTheInventorySays(t *testing.T) {
	for _, tc := range []struct {
		name string
		rule decision.RuleID
	}{
		{"kubernetes", "name-reserved"},
		{"kubernetes.default", "name-reserved"},
		{"kubernetes.example", "name-reserved"},
		{"a.kubernetes.default.svc.other", "name-reserved"},
		{"kubernetes.default.svc", "name-reserved"},
		{"kubernetes.default.svc.cluster.local", "name-reserved"},
		{"localhost", "name-reserved"},
		{"localhost.localdomain", "name-reserved"},
		{"a.localhost", "name-reserved"},
		{"api.ec2.internal", "name-reserved"},
		{"metrics.kube-system.svc", "name-reserved"},
		{"a.b.svc.cluster.local", "name-reserved"},
		{"cluster.local", "name-reserved"},
		{"node.cluster.local", "name-reserved"},
		{"127.0.0.1", "address-reserved"},
		{"127.9.9.9", "address-reserved"},
		{"::1", "address-reserved"},
		{"::ffff:127.0.0.1", "address-reserved"},
		{"0.0.0.0", "address-reserved"},
		{"0.1.2.3", "address-reserved"},
		{"::", "address-reserved"},
		{"169.254.169.254", "address-reserved"},
		{"fe80::1", "address-reserved"},
		{"224.0.0.1", "address-reserved"},
		{"ff02::1", "address-reserved"},
		{"255.255.255.255", "address-reserved"},
		{"10.100.0.1", "address-reserved"},
		{"10.100.0.10", "address-reserved"},
		{"::ffff:10.100.0.1", "address-reserved"},
		{"192.168.64.1", "address-reserved"},
		{"192.168.64.2", "address-reserved"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := serving(t, addrA)
			m := machine(machineA, nodeA, addrA)
			key := tc.name
			if a, err := netip.ParseAddr(tc.name); err == nil {
				w.object.Spec.Request = rawNames(t, pkitest.GeneralName{Tag: 7, Value: a.AsSlice()})
				m.Addresses = append(m.Addresses, a)
				key = a.Unmap().String()
			} else {
				w.object.Spec.Request = pkitest.Kubelet(t, nodeA, tc.name)
				m.Names = append(m.Names, tc.name)
			}
			w.facts.NodeMachine = know(m)
			w.facts.Owners[key] = know([]string{machineA})
			w.must(t, decision.Deny, tc.rule)
			if p := (policy.Policy{}); tc.name == "10.100.0.1" || tc.name == "192.168.64.2" { // the list is what refuses these
				w.policy = p
				w.must(t, decision.Approve, "")
			}
		})
	}
}
