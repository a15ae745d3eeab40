// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/platform/decision"
)

const kubeadm = "system:bootstrappers:kubeadm:default-node-token"

// groups is the requester's: what every token has, and these.
func groups(extra ...string) func(*world) {
	return func(w *world) { w.object.Spec.Groups = append([]string{"system:bootstrappers"}, extra...) }
}

func scoped(t *testing.T, scopes ...token.Scope) func(*world) {
	t.Helper()
	var all []string
	for _, s := range scopes {
		g, err := s.Group()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	return groups(all...)
}

// machineIn changes the machine behind the node.
func machineIn(group string) func(*world) {
	return func(w *world) { w.facts.NodeMachine.Value.Group = group }
}

func all(changes ...func(*world)) func(*world) {
	return func(w *world) {
		for _, c := range changes {
			c(w)
		}
	}
}

func TestScopesOfTokens(t *testing.T) {
	name := func(v string) token.Scope { return token.Scope{Kind: token.ScopeName, Value: v} }
	pattern := func(v string) token.Scope { return token.Scope{Kind: token.ScopePattern, Value: v} }
	group := func(v string) token.Scope { return token.Scope{Kind: token.ScopeGroup, Value: v} }
	id := func(v string) token.Scope { return token.Scope{Kind: token.ScopeMachine, Value: v} }
	noMachine := func(w *world) { w.facts.NodeMachine = policy.None[policy.Machine]("test", now) }
	notKnown := func(w *world) { w.facts.NodeMachine = policy.DontKnow[policy.Machine]("test", "broken") }
	run(t, []namedCase{
		{"by its name", bootstrap(t), scoped(t, name(nodeA)), decision.Approve, ""},
		{"by another's name", bootstrap(t), scoped(t, name(nodeB)), decision.Deny, "bootstrap-name"},
		{"by another's name, approved by a person", bootstrap(t), all(scoped(t, name(nodeB)), (*world).approvedAlready), decision.Deny, "bootstrap-name"},
		{"by a pattern", bootstrap(t), scoped(t, pattern("ip-192-168-64-*.ec2.internal")), decision.Approve, ""},
		{"by a pattern of others", bootstrap(t), scoped(t, pattern("ip-10-*.ec2.internal")), decision.Deny, "bootstrap-name"},
		{"by a pattern that ends before the domain", bootstrap(t), scoped(t, pattern("ip-*")), decision.Deny, "bootstrap-name"},
		{"by its group", bootstrap(t), all(scoped(t, group("workers")), machineIn("workers")), decision.Approve, ""},
		{"by another group", bootstrap(t), all(scoped(t, group("workers")), machineIn("control-plane")), decision.Deny, "bootstrap-group"},
		{"by a group that the inventory does not know", bootstrap(t), scoped(t, group("workers")), decision.Wait, "bootstrap-group"},
		{"by a group, of no machine", bootstrap(t), all(scoped(t, group("workers")), noMachine), decision.Wait, "bootstrap-group"},
		{"by a group, of a machine that is not known", bootstrap(t), all(scoped(t, group("workers")), notKnown), decision.Wait, "bootstrap-group"},
		{"by a group, of a machine that is another node", bootstrap(t), all(scoped(t, group("workers")), machineIn("other"), func(w *world) {
			w.facts.NodeMachine.Value.NodeName = nodeB
		}), decision.Wait, "bootstrap-group"},
		{"by a name, of no machine", bootstrap(t), all(scoped(t, name(nodeA)), noMachine), decision.Wait, "machine"},
		{"by name, pattern, group and machine", bootstrap(t), all(scoped(t, id(machineA), name(nodeA), pattern("ip-*.ec2.*"), group("workers")), machineIn("workers")), decision.Approve, ""},
		{"by its name and another machine", bootstrap(t), all(scoped(t, id(machineB), name(nodeA)), func(w *world) {
			w.facts.TokenMachine = know(machine(machineB, nodeB, addrB))
		}), decision.Deny, "bootstrap-machine"},
		{"by its name and another group", bootstrap(t), all(scoped(t, name(nodeA), group("workers")), machineIn("other")), decision.Deny, "bootstrap-group"},
		{"by two names", bootstrap(t), scoped(t, name(nodeA), name(nodeB)), decision.Ignore, "requester"},
		{"by one name twice", bootstrap(t), scoped(t, name(nodeA), name(nodeA)), decision.Ignore, "requester"},
		{"by two patterns", bootstrap(t), scoped(t, pattern("*.*.*"), pattern("ip-*.*.*")), decision.Ignore, "requester"},
		{"by two groups", bootstrap(t), all(scoped(t, group("workers"), group("other")), machineIn("workers")), decision.Ignore, "requester"},
		{"by a kind that does not exist", bootstrap(t), groups("system:bootstrappers:muster:zone:a"), decision.Ignore, "requester"},
		{"by a pattern that is none", bootstrap(t), groups("system:bootstrappers:muster:pattern:zz"), decision.Ignore, "requester"},
		{"by what cannot be read beside its machine", bootstrap(t), groups("system:bootstrappers:muster:"+machineA, "system:bootstrappers:muster:name:"), decision.Ignore, "requester"},
		{"for a serving certificate", serving(t, addrA), func(w *world) {
			w.object.Spec.Username = "system:bootstrap:abcdef"
			scoped(t, name(nodeA))(w)
		}, decision.Ignore, "requester"},
	})
}

func TestUnboundTokens(t *testing.T) {
	allowed := func(w *world) { w.policy.Bootstrap.UnboundTokens = true }
	run(t, []namedCase{
		{"refused", bootstrap(t), groups(kubeadm), decision.Ignore, "requester"},
		{"refused, approved by a person", bootstrap(t), all(groups(kubeadm), (*world).approvedAlready), decision.Approve, ""},
		{"refused, approved by upstream's approver", bootstrap(t), all(groups(kubeadm), approvedBecause("AutoApproved")), decision.Ignore, "requester"},
		{"refused, approved by another program", bootstrap(t), all(groups(kubeadm), approvedBecause("Robot")), decision.Ignore, "requester"},
		{"allowed, approved by upstream's approver", bootstrap(t), all(groups(kubeadm), allowed, approvedBecause("AutoApproved")), decision.Approve, ""},
		{"bound by what cannot be read, approved by upstream's approver", bootstrap(t), all(groups("system:bootstrappers:muster:zone:a"), approvedBecause("AutoApproved")), decision.Ignore, "requester"},
		{"bound by what cannot be read, approved by a person", bootstrap(t), all(groups("system:bootstrappers:muster:zone:a"), (*world).approvedAlready), decision.Ignore, "requester"},
		{"bound to two names, approved by a person", bootstrap(t), all(scoped(t, token.Scope{Kind: token.ScopeName, Value: nodeA}, token.Scope{Kind: token.ScopeName, Value: nodeB}), (*world).approvedAlready), decision.Ignore, "requester"},
		{"allowed", bootstrap(t), all(groups(kubeadm), allowed), decision.Approve, ""},
		{"allowed, without any group", bootstrap(t), all(groups(), allowed), decision.Approve, ""},
		{"allowed, for no machine of the inventory", bootstrap(t), all(groups(kubeadm), allowed, func(w *world) {
			w.facts.NodeMachine = policy.None[policy.Machine]("test", now)
		}), decision.Wait, "machine"},
		{"allowed, for a node that exists", bootstrap(t), all(groups(kubeadm), allowed, func(w *world) { w.facts.Node = know(true) }), decision.Wait, "existing-node"},
		{"allowed, but not by RBAC", bootstrap(t), all(groups(kubeadm), allowed, func(w *world) { w.facts.Access = know(false) }), decision.Wait, "access-review"},
		{"allowed, but bound to another machine", bootstrap(t), all(groups("system:bootstrappers:muster:"+machineB), allowed, func(w *world) {
			w.facts.TokenMachine = know(machine(machineB, nodeB, addrB))
		}), decision.Deny, "bootstrap-machine"},
		{"allowed, but bound by what cannot be read", bootstrap(t), all(groups("system:bootstrappers:muster:zone:a"), allowed), decision.Ignore, "requester"},
		{"allowed, without the group of all tokens", bootstrap(t), all(allowed, func(w *world) { w.object.Spec.Groups = []string{kubeadm} }), decision.Ignore, "requester"},
		{"allowed, by a person", renewal(t), all(allowed, func(w *world) { w.object.Spec.Username = "alice" }), decision.Ignore, "requester"},
	})
}

// asUser asks as a user without a token that the policy binds to names.
func asUser(name string, names ...string) func(*world) {
	return func(w *world) {
		w.object.Spec.Username, w.object.Spec.Groups = name, []string{"system:authenticated"}
		w.policy.Bootstrap.Bindings = []policy.Binding{{User: name, NodeNames: names}}
	}
}

func TestBindings(t *testing.T) {
	bind := func(b ...policy.Binding) func(*world) {
		return func(w *world) { groups(kubeadm, "system:bootstrappers:b")(w); w.policy.Bootstrap.Bindings = b }
	}
	names := func(group string, n ...string) policy.Binding { return policy.Binding{Group: group, NodeNames: n} }
	inGroups := func(group string, g ...string) policy.Binding {
		return policy.Binding{Group: group, MachineGroups: g}
	}
	const here, elsewhere = "ip-*.ec2.internal", "worker-*"
	both := policy.Binding{Group: kubeadm, NodeNames: []string{here}, MachineGroups: []string{"workers"}}
	run(t, []namedCase{
		{"a pattern that fits", bootstrap(t), bind(names(kubeadm, here)), decision.Approve, ""},
		{"one of two patterns", bootstrap(t), bind(names(kubeadm, elsewhere, here)), decision.Approve, ""},
		{"a pattern that does not", bootstrap(t), bind(names(kubeadm, elsewhere)), decision.Deny, "bootstrap-binding"},
		{"the same, approved by a person", bootstrap(t), all(bind(names(kubeadm, elsewhere)), (*world).approvedAlready), decision.Deny, "bootstrap-binding"},
		{"a group that fits", bootstrap(t), all(bind(inGroups(kubeadm, "a", "workers")), machineIn("workers")), decision.Approve, ""},
		{"a group that does not", bootstrap(t), all(bind(inGroups(kubeadm, "a")), machineIn("workers")), decision.Deny, "bootstrap-binding"},
		{"a group that is not known", bootstrap(t), bind(inGroups(kubeadm, "workers")), decision.Wait, "bootstrap-binding"},
		{"name and group", bootstrap(t), all(bind(both), machineIn("workers")), decision.Approve, ""},
		{"the name and another group", bootstrap(t), all(bind(both), machineIn("other")), decision.Deny, "bootstrap-binding"},
		{"one of two bindings of a group", bootstrap(t), bind(names(kubeadm, elsewhere), names(kubeadm, here)), decision.Approve, ""},
		{"none, but one that may yet fit", bootstrap(t), bind(names(kubeadm, elsewhere), inGroups(kubeadm, "workers")), decision.Wait, "bootstrap-binding"},
		{"none, but one that may yet fit, named first", bootstrap(t), bind(inGroups(kubeadm, "workers"), names(kubeadm, elsewhere)), decision.Wait, "bootstrap-binding"},
		{"two groups that agree", bootstrap(t), bind(names(kubeadm, here), names("system:bootstrappers:b", here)), decision.Approve, ""},
		{"two groups that do not", bootstrap(t), bind(names(kubeadm, here), names("system:bootstrappers:b", elsewhere)), decision.Deny, "bootstrap-binding"},
		{"two groups, one may yet agree", bootstrap(t), bind(inGroups(kubeadm, "workers"), names("system:bootstrappers:b", here)), decision.Wait, "bootstrap-binding"},
		{"another group's binding binds nothing", bootstrap(t), bind(names("system:bootstrappers:c", here)), decision.Ignore, "requester"},
		{"a binding beside the token's own machine", bootstrap(t), all(bind(names("system:bootstrappers", elsewhere)), func(w *world) {
			w.object.Spec.Groups = append(w.object.Spec.Groups, "system:bootstrappers:muster:"+machineA)
		}), decision.Deny, "bootstrap-binding"},
		{"a binding to nothing in particular", bootstrap(t), bind(policy.Binding{Group: kubeadm}), decision.Approve, ""},
		{"a binding beside unbound tokens", bootstrap(t), all(bind(names(kubeadm, elsewhere)), func(w *world) { w.policy.Bootstrap.UnboundTokens = true }), decision.Deny, "bootstrap-binding"},
		{"a node is not bound", renewal(t), func(w *world) {
			w.policy.Bootstrap.Bindings = []policy.Binding{names("system:nodes", elsewhere)}
		}, decision.Approve, ""},
		{"a user who is bound", renewal(t), asUser("vip", here), decision.Approve, ""},
		{"a service account that is bound", renewal(t), asUser("system:serviceaccount:a:node-bootstrapper", here), decision.Approve, ""},
		{"a user bound to other names", renewal(t), asUser("vip", elsewhere), decision.Deny, "bootstrap-binding"},
		{"a user bound, without RBAC", renewal(t), all(asUser("vip", here), func(w *world) { w.facts.Access = know(false) }), decision.Wait, "access-review"},
		{"a user bound, for a node that exists", renewal(t), all(asUser("vip", here), func(w *world) { w.facts.Node = know(true) }), decision.Wait, "existing-node"},
		{"a user bound, for a serving certificate", serving(t, nodeA, addrA), asUser("vip", here), decision.Ignore, "requester"},
		{"another user", renewal(t), all(asUser("vip", here), func(w *world) { w.object.Spec.Username = "vip2" }), decision.Ignore, "requester"},
		{"a user named like Kubernetes' own", renewal(t), asUser("system:admin", here), decision.Ignore, "requester"},
		{"a user in a group that is bound", renewal(t), func(w *world) {
			w.object.Spec.Username, w.object.Spec.Groups = "vip", []string{kubeadm}
			w.policy.Bootstrap.Bindings = []policy.Binding{names(kubeadm, here)}
		}, decision.Ignore, "requester"},
		{"a token is not bound by a user's binding", bootstrap(t), func(w *world) {
			w.policy.Bootstrap.Bindings = []policy.Binding{{User: "system:bootstrap:abcdef", NodeNames: []string{elsewhere}}}
		}, decision.Approve, ""},
		{"a custom signer's request is not about bindings", person(t, pki.SignerClient, vip()), func(w *world) {
			w.object.Spec.Username = "system:bootstrap:abcdef"
			w.object.Spec.Groups = []string{"system:bootstrappers", kubeadm}
			w.policy.Bootstrap.Bindings = []policy.Binding{names(kubeadm, elsewhere)}
		}, decision.Approve, ""},
	})
}
