// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

func TestMachineBehindTheNode(t *testing.T) {
	a := machine(machineA, nodeA, addrA)
	leaving := a
	leaving.Deleting = true
	fact := func(f policy.Fact[policy.Machine]) func(*world) { return func(w *world) { w.facts.NodeMachine = f } }
	old := know(a)
	old.At = now.Add(-3 * time.Minute)
	for _, w := range []func() *world{
		func() *world { return serving(t, nodeA, addrA) },
		func() *world { return renewal(t) },
		func() *world { return bootstrap(t) },
		func() *world { w := renewal(t); w.approvedAlready(); return w },
		// As real ones are: the API server tells with which certificate a node asks.
		func() *world { w := renewal(t); withCertificate("test|"+machineA, false)(w); return w },
		func() *world { w := serving(t, nodeA, addrA); withCertificate("", false)(w); return w },
	} {
		run(t, []namedCase{
			{"not known", w(), fact(policy.DontKnow[policy.Machine]("test", "broken")), decision.Wait, "machine"},
			{"not gathered", w(), fact(policy.Fact[policy.Machine]{}), decision.Wait, "machine"},
			{"known long ago", w(), fact(old), decision.Wait, "machine"},
			{"not there", w(), fact(policy.None[policy.Machine]("test", now)), decision.Wait, "machine"},
			{"being deleted", w(), fact(know(leaving)), decision.Deny, "machine"},
			{"another node's", w(), fact(know(machine(machineB, nodeB, addrB))), decision.Wait, "machine"},
		})
	}
}

func TestNamesAreThisMachinesOwn(t *testing.T) {
	owners := func(name string, f policy.Fact[[]string]) func(*world) {
		return func(w *world) { w.facts.Owners[name] = f }
	}
	aliasB := func(w *world) {
		w.facts.NodeMachine.Value.Names = []string{nodeA, nodeB}
		w.facts.Owners[nodeB] = know([]string{machineA})
	}
	bare := func(w *world) { w.facts.NodeMachine = know(policy.Machine{ID: machineA, NodeName: nodeA}) }
	run(t, []namedCase{
		{"another machine's address", serving(t, nodeA, addrB), nil, decision.Deny, "address-assigned"},
		{"another machine's address beside its own", serving(t, addrA, addrB), nil, decision.Deny, "address-assigned"},
		{"another machine's name", serving(t, nodeB, addrA), nil, decision.Deny, "name-assigned"},
		{"another machine's name beside its own", serving(t, nodeA, nodeB), nil, decision.Deny, "name-assigned"},
		{"nobody's address", serving(t, "192.168.64.99"), owners("192.168.64.99", know([]string(nil))), decision.Wait, "address-assigned"},
		{"an address of which it is not known whose it is", serving(t, "192.168.64.99"), nil, decision.Wait, "address-assigned"},
		{"nobody's address beside its own", serving(t, addrA, "192.168.64.99"), nil, decision.Wait, "address-assigned"},
		{"nobody's address beside another's", serving(t, "192.168.64.99", addrB), nil, decision.Deny, "address-assigned"},
		{"nobody's name", serving(t, "example.com"), nil, decision.Wait, "name-assigned"},
		{"a name that only begins like its own", serving(t, nodeA+".example.com"), nil, decision.Wait, "name-assigned"},
		{"a name that its own only ends with", serving(t, "ec2.internal"), nil, decision.Wait, "name-assigned"},
		{"another machine's address, before it has its own", serving(t, addrB), bare, decision.Wait, "address-assigned"},
		{"another node's name, which the inventory gives it, too", serving(t, nodeB), all(aliasB, func(w *world) { w.facts.Nodes[nodeB] = know(true) }), decision.Wait, "name-assigned"},
		{"the same, when there is no such node", serving(t, nodeB), aliasB, decision.Approve, ""},
		{"the same, when nobody knows", serving(t, nodeB), all(aliasB, func(w *world) { w.facts.Nodes[nodeB] = policy.DontKnow[bool]("test", "broken") }), decision.Wait, "name-assigned"},
		{"the same, when nobody asked", serving(t, nodeB), all(aliasB, func(w *world) { w.facts.Nodes = nil }), decision.Wait, "name-assigned"},
		{"its own address, mapped into IPv6", serving(t, addrA), func(w *world) {
			w.object.Spec.Request = rawNames(t, pkitest.GeneralName{Tag: 7, Value: netip.MustParseAddr("::ffff:" + addrA).AsSlice()})
		}, decision.Approve, ""},
		{"another's address, mapped into IPv6", serving(t, addrA), func(w *world) {
			w.object.Spec.Request = rawNames(t, pkitest.GeneralName{Tag: 7, Value: netip.MustParseAddr("::ffff:" + addrB).AsSlice()})
		}, decision.Deny, "address-assigned"},
		{"its address, IPv4-compatible, which is another address", serving(t, addrA), func(w *world) {
			w.object.Spec.Request = rawNames(t, pkitest.GeneralName{Tag: 7, Value: netip.MustParseAddr("::" + addrA).AsSlice()})
		}, decision.Wait, "address-assigned"},
		{"two machines have the address", serving(t, addrA), owners(addrA, know([]string{machineA, machineB})), decision.Wait, "address-assigned"},
		{"two machines have the name", serving(t, nodeA), owners(nodeA, know([]string{machineB, machineA})), decision.Wait, "name-assigned"},
		{"who else has it is not known", serving(t, addrA), owners(addrA, policy.DontKnow[[]string]("test", "broken")), decision.Wait, "address-assigned"},
		{"who else has it was not asked", serving(t, addrA), func(w *world) { w.facts.Owners = nil }, decision.Wait, "address-assigned"},
		{"it was the machine's a moment ago", serving(t, addrA), owners(addrA, know([]string(nil))), decision.Wait, "address-assigned"},
		{"no addresses are assigned yet", serving(t, addrA), bare, decision.Wait, "address-assigned"},
		{"the node's name counts without a list of names", serving(t, nodeA), bare, decision.Approve, ""},
	})
}

// A range is good for the addresses in it that are not a machine's own, whatever other machine has the range.
func TestAddressesOfARange(t *testing.T) {
	const asked = "192.168.64.77"
	with := func(owners ...string) func(*world) {
		return func(w *world) {
			w.facts.NodeMachine.Value.Ranges = []netip.Prefix{netip.MustParsePrefix("192.168.65.0/24"), netip.MustParsePrefix("192.168.64.64/26")}
			w.facts.Owners[asked] = know(owners)
		}
	}
	only := func(w *world) { w.facts.NodeMachine.Value.Addresses = nil }
	run(t, []namedCase{
		{"in its range", serving(t, nodeA, asked), with(machineA), decision.Approve, ""},
		{"in its range, beside its own", serving(t, nodeA, asked, addrA), with(machineA), decision.Approve, ""},
		{"in its range, without any of its own", serving(t, asked), all(with(machineA), only), decision.Approve, ""},
		{"in a range of several machines", serving(t, nodeA, asked), with(machineA, machineB), decision.Approve, ""},
		{"in no range", serving(t, nodeA, "192.168.66.1"), all(with(machineA), func(w *world) { w.facts.Owners["192.168.66.1"] = know([]string(nil)) }), decision.Wait, "address-assigned"},
		{"another machine's own", serving(t, nodeA, asked), with(machineB), decision.Deny, "address-assigned"},
		{"another machine's own, without any of its own", serving(t, asked), all(with(machineB), only), decision.Deny, "address-assigned"},
		{"the name of another", serving(t, nodeB, asked), with(machineA), decision.Deny, "name-assigned"},
		{"its owner was not asked for", serving(t, asked), all(with(machineA), func(w *world) { w.facts.Owners = nil }), decision.Wait, "address-assigned"},
		{"its owner is not known", serving(t, asked), all(with(machineA), func(w *world) { w.facts.Owners[asked] = policy.DontKnow[[]string]("test", "broken") }), decision.Wait, "address-assigned"},
		{"a moment ago", serving(t, asked), with(), decision.Wait, "address-assigned"},
		{"reserved all the same", serving(t, "10.100.0.1"), func(w *world) {
			w.facts.NodeMachine.Value.Ranges = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
			w.facts.Owners["10.100.0.1"] = know([]string{machineA})
		}, decision.Deny, "address-reserved"},
	})
	w := serving(t, nodeA, asked)
	with(machineA, machineB)(w)
	if d := w.decide(); !strings.Contains(d.String(), asked+" of the range 192.168.64.64/26 assigned to machine "+machineA) {
		t.Errorf("the decision does not name the range:\n%s", d)
	}
}

func TestDenySpeaksBeforeWait(t *testing.T) {
	w := serving(t, addrB)
	w.facts.Access = policy.Fact[bool]{}
	w.must(t, decision.Deny, "address-assigned")
}
