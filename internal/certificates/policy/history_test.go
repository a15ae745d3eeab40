// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/platform/decision"
)

// exists makes the node one that is there, whose last certificate went to a machine ("" if none is on record).
func exists(last string) func(*world) {
	return func(w *world) {
		w.facts.Node = know(true)
		if w.facts.LastMachine = policy.None[policy.MachineRef]("test", now); last != "" {
			w.facts.LastMachine = know(policy.MachineRef(last))
		}
	}
}

func approvedBecause(reason string) func(*world) {
	return func(w *world) {
		w.object.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: "True", Reason: reason}}
	}
}

func TestANodeThatExistsKeepsItsName(t *testing.T) {
	run(t, []namedCase{
		{"no such node", bootstrap(t), nil, decision.Approve, ""},
		{"no such node, said otherwise", bootstrap(t), func(w *world) { w.facts.Node = policy.None[bool]("test", now) }, decision.Approve, ""},
		{"no such node, a certificate on record", bootstrap(t), func(w *world) { w.facts.LastMachine = know(policy.MachineRef(machineA)) }, decision.Approve, ""},
		{"not known whether", bootstrap(t), func(w *world) { w.facts.Node = policy.DontKnow[bool]("test", "broken") }, decision.Wait, "existing-node"},
		{"not asked whether", bootstrap(t), func(w *world) { w.facts.Node = policy.Fact[bool]{} }, decision.Wait, "existing-node"},
		{"the same machine", bootstrap(t), exists(machineA), decision.Wait, "existing-node"},
		{"the same machine, on record with its source", bootstrap(t), exists("test|" + machineA), decision.Wait, "existing-node"},
		{"replaced by another machine", bootstrap(t), exists(machineB), decision.Approve, ""},
		{"replaced by another machine of the same source", bootstrap(t), exists("test|" + machineB), decision.Approve, ""},
		{"another ID, but from another source", bootstrap(t), exists("ec2|" + machineB), decision.Wait, "existing-node"},
		{"a source without an ID", bootstrap(t), exists("test|"), decision.Wait, "existing-node"},
		{"no record", bootstrap(t), exists(""), decision.Wait, "existing-node"},
		{"an empty record", bootstrap(t), all(exists(""), func(w *world) { w.facts.LastMachine = know(policy.MachineRef("")) }), decision.Wait, "existing-node"},
		{"a record that is not known", bootstrap(t), all(exists(""), func(w *world) {
			w.facts.LastMachine = policy.DontKnow[policy.MachineRef]("test", "broken")
		}), decision.Wait, "existing-node"},
		{"a record that was known once", bootstrap(t), all(exists(machineB), func(w *world) { w.facts.LastMachine.State = policy.Unknown }), decision.Wait, "existing-node"},
		{"approved by a person", bootstrap(t), all(exists(machineA), approvedBecause("KubectlApprove")), decision.Approve, ""},
		{"approved by upstream's approver", bootstrap(t), all(exists(machineA), approvedBecause("AutoApproved")), decision.Wait, "existing-node"},
		{"replaced, approved by this program before it was killed", bootstrap(t), all(exists(machineB), approvedBecause("AutoApproved")), decision.Approve, ""},
		{"a renewal", renewal(t), exists(machineA), decision.Approve, ""},
		{"a serving certificate", serving(t, nodeA, addrA), exists(machineA), decision.Approve, ""},
		{"a user's certificate", person(t, pki.SignerClient, vip()), exists(machineA), decision.Approve, ""},
		{"a token for this very machine", bootstrap(t), all(exists(machineA), groups("system:bootstrappers:muster:"+machineA)), decision.Wait, "existing-node"},
		{"the node is deleted while the request waits", bootstrap(t), all(exists(machineA), func(w *world) { w.facts.Node = know(false) }), decision.Approve, ""},
	})
}

// A person may say beforehand that a node joins again. That is about one node, and about nothing while its certificate
// is good.
func TestANodeJoinsAgain(t *testing.T) {
	rejoin := func(node string) func(*world) {
		return scoped(t, token.Scope{Kind: token.ScopeName, Value: node}, token.Scope{Kind: token.ScopeRejoin, Value: node})
	}
	expired := func(f policy.Fact[bool]) func(*world) {
		return all(exists(machineA), rejoin(nodeA), func(w *world) { w.facts.Expired = f })
	}
	only := scoped(t, token.Scope{Kind: token.ScopeRejoin, Value: nodeB})
	run(t, []namedCase{
		{"its certificate has expired", bootstrap(t), expired(know(true)), decision.Approve, ""},
		{"its certificate is good", bootstrap(t), expired(know(false)), decision.Wait, "existing-node"},
		{"no certificate is on record", bootstrap(t), expired(policy.None[bool]("test", now)), decision.Wait, "existing-node"},
		{"not known whether", bootstrap(t), expired(policy.DontKnow[bool]("test", "broken")), decision.Wait, "existing-node"},
		{"not asked whether", bootstrap(t), expired(policy.Fact[bool]{}), decision.Wait, "existing-node"},
		{"another token of its name", bootstrap(t), all(expired(know(true)), scoped(t, token.Scope{Kind: token.ScopeName, Value: nodeA})), decision.Wait, "existing-node"},
		{"another node's", bootstrap(t), all(expired(know(true)), rejoin(nodeB)), decision.Deny, "bootstrap-name"},
		{"another node's, by that alone", bootstrap(t), all(expired(know(true)), only), decision.Deny, "existing-node"},
		{"another node's, for a node that is not there", bootstrap(t), only, decision.Deny, "existing-node"},
		{"another node's, approved by a person", bootstrap(t), all(only, (*world).approvedAlready), decision.Deny, "existing-node"},
		{"no such node", bootstrap(t), rejoin(nodeA), decision.Approve, ""},
		{"its machine is being deleted", bootstrap(t), all(expired(know(true)), func(w *world) { w.facts.NodeMachine.Value.Deleting = true }), decision.Deny, "machine"},
		{"no machine is it", bootstrap(t), all(expired(know(true)), func(w *world) { w.facts.NodeMachine = policy.None[policy.Machine]("test", now) }), decision.Wait, "machine"},
	})
	w := bootstrap(t)
	expired(know(true))(w)
	if d := w.decideAt(now.Add(time.Hour)); d.Verdict == decision.Approve {
		t.Errorf("by an old record: %s", d)
	}
}

func TestMachineRef(t *testing.T) {
	w := bootstrap(t)
	exists(string(policy.RefOf(w.facts.NodeMachine)))(w)
	w.must(t, decision.Wait, "existing-node")
	w.facts.NodeMachine.Value.ID, w.facts.TokenMachine.Value.ID = machineB, machineB
	groups("system:bootstrappers:muster:" + machineB)(w)
	w.must(t, decision.Approve, "")
}

func TestAKeyBelongsToOneNode(t *testing.T) {
	owner := func(f policy.Fact[string]) func(*world) { return func(w *world) { w.facts.KeyOwner = f } }
	for name, w := range map[string]func() *world{
		"serving":   func() *world { return serving(t, nodeA, addrA) },
		"renewal":   func() *world { return renewal(t) },
		"bootstrap": func() *world { return bootstrap(t) },
		"approved":  func() *world { w := bootstrap(t); w.approvedAlready(); return w },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, []namedCase{
				{"a new key", w(), nil, decision.Approve, ""},
				{"its own key", w(), owner(know(nodeA)), decision.Approve, ""},
				{"another node's key", w(), owner(know(nodeB)), decision.Deny, "key-owner"},
				{"a user's key", w(), owner(know("user:alice")), decision.Deny, "key-owner"},
				{"nobody's key on record", w(), owner(know("")), decision.Deny, "key-owner"},
				{"not known", w(), owner(policy.DontKnow[string]("test", "broken")), decision.Wait, "key-owner"},
				{"not asked", w(), owner(policy.Fact[string]{}), decision.Wait, "key-owner"},
			})
		})
	}
	run(t, []namedCase{
		{"a user's own key", person(t, pki.SignerClient, vip()), owner(know("user:vip")), decision.Approve, ""},
		{"a node's key for a user", person(t, pki.SignerClient, vip()), owner(know(nodeA)), decision.Deny, "key-owner"},
		{"not known whose key a user has", person(t, pki.SignerClient, vip()), owner(policy.Fact[string]{}), decision.Wait, "key-owner"},
	})
}

// A fact that is being looked up is worth no event. A fact that cannot be had is worth an event.
func TestSoon(t *testing.T) {
	soon := policy.Fact[policy.Machine]{Source: "dns", Why: "being asked", Soon: true}
	for _, tc := range []struct {
		name   string
		change func(*world)
		want   bool
	}{
		{"approved", nil, false},
		{"machine", func(w *world) { w.facts.NodeMachine = soon }, true},
		{"machine, broken", func(w *world) { w.facts.NodeMachine = policy.DontKnow[policy.Machine]("dns", "broken") }, false},
		{"one of two", func(w *world) { w.facts.NodeMachine = soon; w.facts.Access = know(false) }, true},
		{"owners", func(w *world) { w.facts.Owners[addrA] = policy.Fact[[]string]{Soon: true} }, true},
		{"key", func(w *world) { w.facts.KeyOwner = policy.Fact[string]{Soon: true} }, true},
		{"access that is absent", func(w *world) { w.facts.Access = policy.Fact[bool]{State: policy.Absent, At: now, Soon: true} }, false},
		{"refused anyhow", func(w *world) { w.facts.NodeMachine = soon; w.object.Spec.Usages = nil }, false},
		{"known, whatever it says of soon", func(w *world) { w.facts.KeyOwner.Soon = true }, false},
		{"absent, whatever it says of soon", func(w *world) {
			w.facts.NodeMachine = policy.None[policy.Machine]("dns", now)
			w.facts.NodeMachine.Soon = true
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := serving(t, nodeA, addrA)
			if tc.change != nil {
				tc.change(w)
			}
			if d := w.decide(); d.Soon() != tc.want {
				t.Errorf("%v\n%s", d.Soon(), d)
			}
		})
	}
}
