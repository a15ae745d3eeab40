// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

func TestRequester(t *testing.T) {
	user := func(name string, groups ...string) func(*world) {
		return func(w *world) { w.object.Spec.Username, w.object.Spec.Groups = name, groups }
	}
	run(t, []namedCase{
		{"a node for another node", serving(t, addrA), user("system:node:"+nodeB, "system:nodes"), decision.Deny, "requester-name"},
		{"a node's client certificate for another node", renewal(t), user("system:node:"+nodeB, "system:nodes"), decision.Deny, "requester-name"},
		{"a node for another node, approved by a person", serving(t, addrA), func(w *world) {
			user("system:node:"+nodeB, "system:nodes")(w)
			w.approvedAlready()
		}, decision.Deny, "requester-name"},
		{"a node's name without its group", serving(t, addrA), user("system:node:" + nodeA), decision.Ignore, "requester"},
		{"a person", renewal(t), user("alice", "system:masters"), decision.Ignore, "requester"},
		{"a person in the nodes' group", renewal(t), user("alice", "system:nodes"), decision.Ignore, "requester"},
		{"a person, approved by a person", renewal(t), func(w *world) { user("alice")(w); w.approvedAlready() }, decision.Approve, ""},
		{"a person, approved by a person, with another's address", serving(t, addrB), func(w *world) { user("alice")(w); w.approvedAlready() }, decision.Deny, "address-assigned"},
		{"a user who is only called like a bootstrap token", bootstrap(t), user("system:bootstrap:abcdef", "system:bootstrappers:muster:"+machineA), decision.Ignore, "requester"},
		{"a bootstrap user name of another length", bootstrap(t), user("system:bootstrap:abcdefg", "system:bootstrappers", "system:bootstrappers:muster:"+machineA), decision.Ignore, "requester"},
		{"a bootstrap user name with upper case", bootstrap(t), user("system:bootstrap:ABCDEF", "system:bootstrappers", "system:bootstrappers:muster:"+machineA), decision.Ignore, "requester"},
		{"a service account in the bootstrappers' groups", bootstrap(t), user("system:serviceaccount:a:b", "system:bootstrappers", "system:bootstrappers:muster:"+machineA), decision.Ignore, "requester"},
		{"a bootstrap token for no machine", bootstrap(t), user("system:bootstrap:abcdef", "system:bootstrappers"), decision.Ignore, "requester"},
		{"a bootstrap token for kubeadm's group", bootstrap(t), user("system:bootstrap:abcdef", "system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token"), decision.Ignore, "requester"},
		{"a bootstrap token for two machines", bootstrap(t), user("system:bootstrap:abcdef", "system:bootstrappers", "system:bootstrappers:muster:"+machineA, "system:bootstrappers:muster:"+machineB), decision.Ignore, "requester"},
		{"a bootstrap token for a machine without a name", bootstrap(t), user("system:bootstrap:abcdef", "system:bootstrappers", "system:bootstrappers:muster:"), decision.Ignore, "requester"},
		{"a bootstrap token for a serving certificate", serving(t, addrA), user("system:bootstrap:abcdef", "system:bootstrappers", "system:bootstrappers:muster:"+machineA), decision.Ignore, "requester"},
		{"contents that are wrong whoever asks", renewal(t), func(w *world) { user("alice")(w); w.object.Spec.Usages = nil }, decision.Deny, "usages"},
	})
}

func TestAMachineOfAnotherClusterIsNoNode(t *testing.T) {
	elsewhere := func(f policy.Fact[string], names ...string) func(*world) {
		return func(w *world) {
			w.facts.Elsewhere = f
			if len(names) > 0 {
				w.object.Spec.Extra = map[string]certificatesv1.ExtraValue{"sessionName": names}
			}
		}
	}
	blue, nobody := know("blue"), policy.DontKnow[string]("test", "away")
	run(t, []namedCase{
		{"a node by its role asks for a serving certificate", serving(t, addrA), elsewhere(blue, machineA), decision.Deny, "machine-cluster"},
		{"for a client certificate", renewal(t), elsewhere(blue, machineA), decision.Deny, "machine-cluster"},
		{"and a person approved", renewal(t), func(w *world) { elsewhere(blue, machineA)(w); w.approvedAlready() }, decision.Deny, "machine-cluster"},
		{"with a bootstrap token", bootstrap(t), elsewhere(blue), decision.Deny, "machine-cluster"},
		{"with the token of another machine, by the session", renewal(t), elsewhere(blue, machineB), decision.Deny, "machine-cluster"},
		{"nobody knows whose machine it is", serving(t, addrA), elsewhere(nobody, machineA), decision.Wait, "machine-cluster"},
		{"nobody knows whose machine the token is for", bootstrap(t), elsewhere(nobody), decision.Wait, "machine-cluster"},
		{"its own cluster", serving(t, addrA), elsewhere(policy.None[string]("test", now), machineA), decision.Approve, ""},
		{"a session that is no instance's", serving(t, addrA), elsewhere(nobody, "anna"), decision.Approve, ""},
		{"two sessions, which no authenticator writes", serving(t, addrA), elsewhere(nobody, machineA, machineB), decision.Approve, ""},
		{"a client certificate of a node", serving(t, addrA), elsewhere(nobody), decision.Approve, ""},
		{"no node", person(t, appClient, vip()), elsewhere(blue, machineA), decision.Approve, ""},
	})
}

func TestBootstrapTokenIsGoodForOneMachine(t *testing.T) {
	a, b := machine(machineA, nodeA, addrA), machine(machineB, nodeB, addrB)
	leaving, unnamed := a, a
	leaving.Deleting, unnamed.NodeName = true, ""
	token := func(f policy.Fact[policy.Machine]) func(*world) { return func(w *world) { w.facts.TokenMachine = f } }
	forB := func(w *world) {
		w.object.Spec.Groups = []string{"system:bootstrappers", "system:bootstrappers:muster:" + machineB}
		w.facts.TokenMachine = know(b)
	}
	run(t, []namedCase{
		{"another machine's token", bootstrap(t), forB, decision.Deny, "bootstrap-machine"},
		{"another machine's token, approved by a person", bootstrap(t), func(w *world) { forB(w); w.approvedAlready() }, decision.Deny, "bootstrap-machine"},
		{"the machine is not known", bootstrap(t), token(policy.DontKnow[policy.Machine]("test", "broken")), decision.Wait, "bootstrap-machine"},
		{"nobody gathered the fact", bootstrap(t), token(policy.Fact[policy.Machine]{}), decision.Wait, "bootstrap-machine"},
		{"the machine is not there yet", bootstrap(t), token(policy.None[policy.Machine]("test", now)), decision.Wait, "bootstrap-machine"},
		{"the machine has no node name yet", bootstrap(t), token(know(unnamed)), decision.Wait, "bootstrap-machine"},
		{"the machine is being deleted", bootstrap(t), token(know(leaving)), decision.Deny, "bootstrap-machine"},
		{"the inventory answers about another machine", bootstrap(t), token(know(b)), decision.Wait, "bootstrap-machine"},
		{"the node has become another machine", bootstrap(t), func(w *world) { m := a; m.ID = machineB; w.facts.NodeMachine = know(m) }, decision.Wait, "machine"},
	})
}
