// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

// renews is a node whose machine the inventory does not know, and whose kubelet serves under the names that it asks
// for.
func renews(t testing.TB, names ...string) *world {
	t.Helper()
	w := serving(t, names...)
	w.policy.ServingRenewal = true
	w.facts.NodeMachine = policy.None[policy.Machine]("test", now)
	w.facts.Node = know(true)
	s := policy.Serving{Node: nodeA, Asked: netip.MustParseAddr(addrA)}
	for _, n := range names {
		w.facts.Owners[n] = know([]string(nil))
		if ip, err := netip.ParseAddr(n); err == nil {
			s.Addresses = append(s.Addresses, ip)
		} else {
			s.Names = append(s.Names, n)
			w.facts.Nodes[n] = know(false)
		}
	}
	w.facts.Serving = know(s)
	return w
}

func TestServingRenewal(t *testing.T) {
	change := func(f func(*policy.Serving)) func(*world) { return func(w *world) { f(&w.facts.Serving.Value) } }
	told := func(w *world) {
		w.object.Spec.Extra = map[string]certificatesv1.ExtraValue{credentialID: {"X509SHA256=" + strings.Repeat("0a", 32)}}
		w.facts.Credential = know(policy.Credential{})
	}
	run(t, []namedCase{
		{"the same names", renews(t, nodeA, addrA), nil, decision.Approve, ""},
		{"the same names in another order and in capitals", renews(t, nodeA, addrA, "a.example"), change(func(s *policy.Serving) { s.Names = []string{"A.example", nodeA} }), decision.Approve, ""},
		{"by a certificate that no record has", renews(t, nodeA, addrA), told, decision.Approve, ""},
		{"without the policy", renews(t, nodeA, addrA), func(w *world) { w.policy.ServingRenewal = false }, decision.Wait, "machine"},
		{"one name more", renews(t, nodeA, addrA, "a.example"), change(func(s *policy.Serving) { s.Names = []string{nodeA} }), decision.Wait, "machine"},
		{"one name less", renews(t, nodeA, addrA), change(func(s *policy.Serving) { s.Names = append(s.Names, "a.example") }), decision.Wait, "machine"},
		{"one address more", renews(t, nodeA, addrA, addrB), change(func(s *policy.Serving) { s.Addresses = s.Addresses[:1] }), decision.Wait, "machine"},
		{"another node answers", renews(t, nodeA, addrA), change(func(s *policy.Serving) { s.Node = nodeB }), decision.Wait, "machine"},
		{"asked somewhere else", renews(t, nodeA, addrA), change(func(s *policy.Serving) { s.Asked = netip.MustParseAddr(addrB) }), decision.Wait, "machine"},
		{"nobody answers", renews(t, nodeA, addrA), func(w *world) { w.facts.Serving = policy.DontKnow[policy.Serving]("test", "refused") }, decision.Wait, "machine"},
		{"nobody asked", renews(t, nodeA, addrA), func(w *world) { w.facts.Serving = policy.Fact[policy.Serving]{} }, decision.Wait, "machine"},
		{"it answered long ago", renews(t, nodeA, addrA), func(w *world) { w.facts.Serving.At = now.Add(-time.Hour) }, decision.Wait, "machine"},
		{"no address to ask at", renews(t, nodeA), nil, decision.Wait, "machine"},
		{"another node asks", renews(t, nodeA, addrA), func(w *world) { w.object.Spec.Username = "system:node:" + nodeB }, decision.Deny, "requester-name"},
		{"a stranger asks", renews(t, nodeA, addrA), func(w *world) { w.object.Spec.Username, w.object.Spec.Groups = "alice", nil }, decision.Ignore, "requester"},
		{"no access", renews(t, nodeA, addrA), func(w *world) { w.facts.Access = know(false) }, decision.Wait, "access-review"},
		{"a reserved address", renews(t, nodeA, addrA, "10.100.0.1"), nil, decision.Deny, "address-reserved"},
		{"the key of another", renews(t, nodeA, addrA), func(w *world) { w.facts.KeyOwner = know(nodeB) }, decision.Deny, "key-owner"},
		{"a machine's address", renews(t, nodeA, addrA), func(w *world) { w.facts.Owners[addrA] = know([]string{machineB}) }, decision.Deny, "address-assigned"},
		{"a machine's name", renews(t, nodeA, addrA), func(w *world) { w.facts.Owners[nodeA] = know([]string{machineB}) }, decision.Deny, "name-assigned"},
		{"the owner of the address is not known", renews(t, nodeA, addrA), func(w *world) { delete(w.facts.Owners, addrA) }, decision.Wait, "address-assigned"},
		{"another node's name", renews(t, nodeA, nodeB, addrA), func(w *world) { w.facts.Nodes[nodeB] = know(true) }, decision.Wait, "name-assigned"},
		{"nobody knows whether it is", renews(t, nodeA, nodeB, addrA), func(w *world) { w.facts.Nodes = nil }, decision.Wait, "name-assigned"},
		{"the inventory cannot tell", renews(t, nodeA, addrA), func(w *world) { w.facts.NodeMachine = policy.DontKnow[policy.Machine]("test", "broken") }, decision.Wait, "machine"},
		{"the machine is being deleted", renews(t, nodeA, addrA), func(w *world) {
			m := machine(machineA, nodeA, addrA)
			m.Deleting = true
			w.facts.NodeMachine = know(m)
		}, decision.Deny, "machine"},
		{"the machine has another address", renews(t, nodeA, addrA), func(w *world) {
			w.facts.NodeMachine = know(machine(machineA, nodeA, addrB))
			w.facts.Owners[nodeA] = know([]string{machineA})
		}, decision.Wait, "address-assigned"},
	})
}

// A client's certificate is nothing that a kubelet serves with.
func TestServingRenewalIsForServing(t *testing.T) {
	w := renewal(t)
	w.policy.ServingRenewal = true
	w.facts.NodeMachine = policy.None[policy.Machine]("test", now)
	w.facts.Serving = know(policy.Serving{Node: nodeA, Asked: netip.MustParseAddr(addrA)})
	w.must(t, decision.Wait, "machine")
}

// No node is dialed that a dial could not help, nor at an address that is reserved.
func TestServingIsAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		w    *world
		want int
	}{
		"a node":             {renews(t, nodeA, addrA), 1},
		"a reserved address": {renews(t, nodeA, addrA, "10.100.0.1"), 0},
		"loopback":           {renews(t, nodeA, "127.0.0.1"), 0},
		"another node":       {but(renews(t, nodeA, addrA), func(w *world) { w.object.Spec.Username = "system:node:" + nodeB }), 0},
		"a stranger":         {but(renews(t, nodeA, addrA), func(w *world) { w.object.Spec.Username = "alice" }), 0},
		"without the policy": {but(renews(t, nodeA, addrA), func(w *world) { w.policy.ServingRenewal = false }), 0},
	} {
		if got := policy.Ask(tc.w.policy, policy.Read(&tc.w.object, tc.w.policy)).Serving; len(got) != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func but(w *world, change func(*world)) *world {
	change(w)
	return w
}
