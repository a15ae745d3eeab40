// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/pki"
	"muster.dev/muster/internal/pki/pkitest"
	"muster.dev/muster/internal/policy"
	"muster.dev/muster/internal/trace"
)

const (
	machineA = "i-0000000000000000a"
	machineB = "i-0000000000000000b"
	nodeA    = "ip-192-168-64-11.muster.internal"
	nodeB    = "ip-192-168-64-12.muster.internal"
	addrA    = "192.168.64.11"
	addrB    = "192.168.64.12"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// world is one request and everything around it: tests start from a good one and change one thing.
type world struct {
	policy  policy.Policy
	object  certificatesv1.CertificateSigningRequest
	facts   policy.Facts
	request *policy.Request
}

func machine(id, node, addr string) policy.Machine {
	return policy.Machine{ID: id, NodeName: node, Names: []string{node}, Addresses: []netip.Addr{netip.MustParseAddr(addr)}}
}

func know[T any](v T) policy.Fact[T] { return policy.Know(v, "test", now) }

func base(signer string, pem []byte, user string, groups ...string) *world {
	w := &world{policy: policy.Policy{
		ClusterDomain:     "cluster.local",
		ReservedNames:     []string{"api.muster.internal"},
		ReservedAddresses: []netip.Prefix{netip.MustParsePrefix("10.100.0.0/16"), netip.MustParsePrefix("192.168.64.1/32"), netip.MustParsePrefix("192.168.64.2/32")},
	}}
	w.object.Spec = certificatesv1.CertificateSigningRequestSpec{
		SignerName: signer, Request: pem, Username: user, Groups: append(groups, "system:authenticated"),
		Usages: []certificatesv1.KeyUsage{"digital signature", "client auth"},
	}
	if signer == pki.SignerKubeletServing {
		w.object.Spec.Usages[1] = "server auth"
	}
	a := machine(machineA, nodeA, addrA)
	w.facts = policy.Facts{
		TokenMachine: know(a), NodeMachine: know(a), Access: know(true),
		Owners: map[string]policy.Fact[[]string]{
			nodeA: know([]string{machineA}), addrA: know([]string{machineA}),
			nodeB: know([]string{machineB}), addrB: know([]string{machineB}),
		},
	}
	return w
}

func serving(t testing.TB, names ...string) *world {
	t.Helper()
	return base(pki.SignerKubeletServing, pkitest.Kubelet(t, nodeA, names...), "system:node:"+nodeA, "system:nodes")
}

func renewal(t testing.TB) *world {
	t.Helper()
	return base(pki.SignerKubeletClient, pkitest.Kubelet(t, nodeA), "system:node:"+nodeA, "system:nodes")
}

func bootstrap(t testing.TB) *world {
	t.Helper()
	return base(pki.SignerKubeletClient, pkitest.Kubelet(t, nodeA),
		"system:bootstrap:abcdef", "system:bootstrappers", "system:bootstrappers:muster:"+machineA)
}

func (w *world) decide() trace.Decision {
	r := policy.Read(&w.object)
	if w.request != nil {
		r = *w.request
	}
	return policy.Decide(w.policy, r, w.facts, now)
}

func (w *world) approvedAlready() {
	w.object.Status.Conditions = append(w.object.Status.Conditions,
		certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: "True"})
}

// must checks the verdict and the rule that decided.
func (w *world) must(t *testing.T, verdict trace.Verdict, rule trace.RuleID) {
	t.Helper()
	d := w.decide()
	if d.Verdict != verdict || d.Rule != rule {
		t.Errorf("got %s by %q, want %s by %q\n%s", d.Verdict, d.Rule, verdict, rule, d)
	}
}

type namedCase struct {
	name    string
	world   *world
	change  func(*world)
	verdict trace.Verdict
	rule    trace.RuleID
}

func run(t *testing.T, cases []namedCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if tc.change != nil {
				tc.change(tc.world)
			}
			tc.world.must(t, tc.verdict, tc.rule)
		})
	}
}

func TestGoodRequestsAreApproved(t *testing.T) {
	run(t, []namedCase{
		{"a node's serving certificate", serving(t, nodeA, addrA), nil, trace.Approve, ""},
		{"one with an address only", serving(t, addrA), nil, trace.Approve, ""},
		{"one with a name only", serving(t, nodeA), nil, trace.Approve, ""},
		{"a node's new client certificate", renewal(t), nil, trace.Approve, ""},
		{"a bootstrap token's client certificate", bootstrap(t), nil, trace.Approve, ""},
		{"with key encipherment, as RSA keys have", serving(t, addrA), func(w *world) {
			w.object.Spec.Usages = append(w.object.Spec.Usages, "key encipherment")
		}, trace.Approve, ""},
		{"approved by a person", bootstrap(t), (*world).approvedAlready, trace.Approve, ""},
	})
}

func TestEveryRuleIsCheckedOnApproval(t *testing.T) {
	d := serving(t, nodeA, addrA).decide()
	var ran []trace.RuleID
	for _, c := range d.Checks {
		ran = append(ran, c.Rule)
	}
	if !slices.Equal(ran, policy.RuleIDs()) {
		t.Errorf("ran %q\nof  %q", ran, policy.RuleIDs())
	}
}

func TestScope(t *testing.T) {
	condition := func(kind certificatesv1.RequestConditionType) func(*world) {
		return func(w *world) {
			w.object.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: kind}}
		}
	}
	run(t, []namedCase{
		{"another signer", serving(t, addrA), func(w *world) { w.object.Spec.SignerName = "example.com/mine" }, trace.Ignore, "signer"},
		{"kube-apiserver-client", renewal(t), func(w *world) { w.object.Spec.SignerName = "kubernetes.io/kube-apiserver-client" }, trace.Ignore, "signer"},
		{"denied", serving(t, addrA), condition(certificatesv1.CertificateDenied), trace.Ignore, "undecided"},
		{"failed", serving(t, addrA), condition(certificatesv1.CertificateFailed), trace.Ignore, "undecided"},
		{"issued", serving(t, addrA), func(w *world) { w.approvedAlready(); w.object.Status.Certificate = []byte("x") }, trace.Ignore, "undecided"},
		{"a phase that does not exist", serving(t, addrA), func(w *world) {
			r := policy.Read(&w.object)
			r.Phase = "Tuesday"
			w.request = &r
		}, trace.Ignore, "undecided"},
	})
}

func TestContents(t *testing.T) {
	encode := func(change func(*pkitestTemplate)) []byte {
		tpl := pkitest.Template(nodeA, addrA)
		change(tpl)
		return pkitest.Encode(t, pkitest.Key(t), tpl)
	}
	request := func(pem []byte) func(*world) { return func(w *world) { w.object.Spec.Request = pem } }
	usages := func(u ...certificatesv1.KeyUsage) func(*world) { return func(w *world) { w.object.Spec.Usages = u } }
	seconds := func(s int32) func(*world) { return func(w *world) { w.object.Spec.ExpirationSeconds = &s } }
	good := pkitest.Kubelet(t, nodeA, addrA)
	run(t, []namedCase{
		{"no bytes", serving(t, addrA), request(nil), trace.Deny, "shape"},
		{"trailing PEM data", serving(t, addrA), request(append(slices.Clone(good), good...)), trace.Deny, "shape"},
		{"two common names", renewal(t), request(twoNames(t)), trace.Deny, "shape"},
		{"a request that nobody read", serving(t, addrA), func(w *world) {
			w.request = &policy.Request{SignerName: pki.SignerKubeletServing, Phase: policy.Pending}
		}, trace.Deny, "shape"},
		{"Ed25519", renewal(t), request(ed25519Request(t)), trace.Deny, "key"},
		{"Ed25519, chosen", renewal(t), func(w *world) {
			w.object.Spec.Request, w.policy.AllowEd25519 = ed25519Request(t), true
		}, trace.Approve, ""},
		{"no organization", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.Organization = nil })), trace.Deny, "organization"},
		{"system:masters", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.Organization = []string{"system:masters"} })), trace.Deny, "organization"},
		{"system:masters, too", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.Organization = []string{"system:nodes", "system:masters"} })), trace.Deny, "organization"},
		{"system:nodes twice", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.Organization = []string{"system:nodes", "system:nodes"} })), trace.Deny, "organization"},
		{"no node's name", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.CommonName = "admin" })), trace.Deny, "common-name"},
		{"an empty node name", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.CommonName = "system:node:" })), trace.Deny, "common-name"},
		{"an upper case node name", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.CommonName = "system:node:A" })), trace.Deny, "common-name"},
		{"a node name with a slash", serving(t, addrA), request(encode(func(r *pkitestTemplate) { r.Subject.CommonName = "system:node:a/b" })), trace.Deny, "common-name"},
		{"client auth as a third usage", serving(t, addrA), usages("digital signature", "server auth", "client auth"), trace.Deny, "usages"},
		{"cert sign as a third usage", serving(t, addrA), usages("digital signature", "server auth", "cert sign"), trace.Deny, "usages"},
		{"one usage", serving(t, addrA), usages("server auth"), trace.Deny, "usages"},
		{"the other profile's usages", renewal(t), usages("digital signature", "server auth"), trace.Deny, "usages"},
		{"the same usage twice", serving(t, addrA), usages("digital signature", "server auth", "server auth"), trace.Deny, "usages"},
		{"nine minutes", serving(t, addrA), seconds(540), trace.Deny, "expiration"},
		{"ten minutes", serving(t, addrA), seconds(600), trace.Approve, ""},
		{"two years", serving(t, addrA), seconds(2 * 365 * 24 * 3600), trace.Deny, "expiration"},
		{"more than the operator chose", serving(t, addrA), func(w *world) { w.policy.MaxExpiration = time.Hour; seconds(3601)(w) }, trace.Deny, "expiration"},
		{"as much as the operator chose", serving(t, addrA), func(w *world) { w.policy.MaxExpiration = time.Hour; seconds(3600)(w) }, trace.Approve, ""},
		{"names on a client certificate", renewal(t), request(pkitest.Kubelet(t, nodeA, nodeA)), trace.Deny, "name-count"},
		{"addresses on a client certificate", renewal(t), request(pkitest.Kubelet(t, nodeA, addrA)), trace.Deny, "name-count"},
		{"no names on a serving certificate", serving(t, addrA), request(pkitest.Kubelet(t, nodeA)), trace.Deny, "name-count"},
	})
}

func TestNamesAreCanonical(t *testing.T) {
	for _, name := range []string{
		"", "*", "*.muster.internal", "a.*.b", "IP-192-168-64-11.muster.internal", nodeA + ".", "a..b", ".a", "a b", "a_b",
		"-a", "a-", "xn--80ak6aa92e.com", "10.0.0.1", "1", "a.1", "a.0x7f", "a\x00b", "höst",
		"a12345678901234567890123456789012345678901234567890123456789012345.b",
	} {
		t.Run(name, func(t *testing.T) {
			w := serving(t, addrA)
			w.object.Spec.Request = rawNames(t, pkitest.GeneralName{Tag: 2, Value: []byte(name)})
			d := w.decide()
			// What is not even ASCII does not get past the reader.
			if d.Verdict != trace.Deny || d.Rule != "name-canonical" && d.Rule != "shape" {
				t.Errorf("%s", d)
			}
		})
	}
}

// Reserved names and addresses stay refused when the inventory assigns them to the very machine that asks.
func TestReservedIsRefusedWhateverTheInventorySays(t *testing.T) {
	for _, tc := range []struct {
		name string
		rule trace.RuleID
	}{
		{"kubernetes", "name-reserved"},
		{"kubernetes.default", "name-reserved"},
		{"kubernetes.default.svc", "name-reserved"},
		{"kubernetes.default.svc.cluster.local", "name-reserved"},
		{"localhost", "name-reserved"},
		{"localhost.localdomain", "name-reserved"},
		{"a.localhost", "name-reserved"},
		{"api.muster.internal", "name-reserved"},
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
			w.must(t, trace.Deny, tc.rule)
			if p := (policy.Policy{}); tc.name == "10.100.0.1" || tc.name == "192.168.64.2" { // the list is what refuses these
				w.policy = p
				w.must(t, trace.Approve, "")
			}
		})
	}
}

func TestRequester(t *testing.T) {
	user := func(name string, groups ...string) func(*world) {
		return func(w *world) { w.object.Spec.Username, w.object.Spec.Groups = name, groups }
	}
	run(t, []namedCase{
		{"a node for another node", serving(t, addrA), user("system:node:"+nodeB, "system:nodes"), trace.Deny, "requester-name"},
		{"a node's client certificate for another node", renewal(t), user("system:node:"+nodeB, "system:nodes"), trace.Deny, "requester-name"},
		{"a node for another node, approved by a person", serving(t, addrA), func(w *world) {
			user("system:node:"+nodeB, "system:nodes")(w)
			w.approvedAlready()
		}, trace.Deny, "requester-name"},
		{"a node's name without its group", serving(t, addrA), user("system:node:" + nodeA), trace.Ignore, "requester"},
		{"a person", renewal(t), user("alice", "system:masters"), trace.Ignore, "requester"},
		{"a person in the nodes' group", renewal(t), user("alice", "system:nodes"), trace.Ignore, "requester"},
		{"a person, approved by a person", renewal(t), func(w *world) { user("alice")(w); w.approvedAlready() }, trace.Approve, ""},
		{"a person, approved by a person, with another's address", serving(t, addrB), func(w *world) { user("alice")(w); w.approvedAlready() }, trace.Deny, "address-assigned"},
		{"a user who is only called like a bootstrap token", bootstrap(t), user("system:bootstrap:abcdef", "system:bootstrappers:muster:"+machineA), trace.Ignore, "requester"},
		{"a bootstrap user name of another length", bootstrap(t), user("system:bootstrap:abcdefg", "system:bootstrappers", "system:bootstrappers:muster:"+machineA), trace.Ignore, "requester"},
		{"a bootstrap user name with upper case", bootstrap(t), user("system:bootstrap:ABCDEF", "system:bootstrappers", "system:bootstrappers:muster:"+machineA), trace.Ignore, "requester"},
		{"a service account in the bootstrappers' groups", bootstrap(t), user("system:serviceaccount:a:b", "system:bootstrappers", "system:bootstrappers:muster:"+machineA), trace.Ignore, "requester"},
		{"a bootstrap token for no machine", bootstrap(t), user("system:bootstrap:abcdef", "system:bootstrappers"), trace.Ignore, "requester"},
		{"a bootstrap token for kubeadm's group", bootstrap(t), user("system:bootstrap:abcdef", "system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token"), trace.Ignore, "requester"},
		{"a bootstrap token for two machines", bootstrap(t), user("system:bootstrap:abcdef", "system:bootstrappers", "system:bootstrappers:muster:"+machineA, "system:bootstrappers:muster:"+machineB), trace.Ignore, "requester"},
		{"a bootstrap token for a machine without a name", bootstrap(t), user("system:bootstrap:abcdef", "system:bootstrappers", "system:bootstrappers:muster:"), trace.Ignore, "requester"},
		{"a bootstrap token for a serving certificate", serving(t, addrA), user("system:bootstrap:abcdef", "system:bootstrappers", "system:bootstrappers:muster:"+machineA), trace.Ignore, "requester"},
		{"contents that are wrong whoever asks", renewal(t), func(w *world) { user("alice")(w); w.object.Spec.Usages = nil }, trace.Deny, "usages"},
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
		{"another machine's token", bootstrap(t), forB, trace.Deny, "bootstrap-machine"},
		{"another machine's token, approved by a person", bootstrap(t), func(w *world) { forB(w); w.approvedAlready() }, trace.Deny, "bootstrap-machine"},
		{"the machine is not known", bootstrap(t), token(policy.DontKnow[policy.Machine]("test", "broken")), trace.Wait, "bootstrap-machine"},
		{"nobody gathered the fact", bootstrap(t), token(policy.Fact[policy.Machine]{}), trace.Wait, "bootstrap-machine"},
		{"the machine is not there yet", bootstrap(t), token(policy.None[policy.Machine]("test", now)), trace.Wait, "bootstrap-machine"},
		{"the machine has no node name yet", bootstrap(t), token(know(unnamed)), trace.Wait, "bootstrap-machine"},
		{"the machine is being deleted", bootstrap(t), token(know(leaving)), trace.Deny, "bootstrap-machine"},
		{"the inventory answers about another machine", bootstrap(t), token(know(b)), trace.Wait, "bootstrap-machine"},
		{"the node has become another machine", bootstrap(t), func(w *world) { m := a; m.ID = machineB; w.facts.NodeMachine = know(m) }, trace.Wait, "machine"},
	})
}

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
	} {
		run(t, []namedCase{
			{"not known", w(), fact(policy.DontKnow[policy.Machine]("test", "broken")), trace.Wait, "machine"},
			{"not gathered", w(), fact(policy.Fact[policy.Machine]{}), trace.Wait, "machine"},
			{"known long ago", w(), fact(old), trace.Wait, "machine"},
			{"not there", w(), fact(policy.None[policy.Machine]("test", now)), trace.Wait, "machine"},
			{"being deleted", w(), fact(know(leaving)), trace.Deny, "machine"},
			{"another node's", w(), fact(know(machine(machineB, nodeB, addrB))), trace.Wait, "machine"},
		})
	}
}

func TestNamesAreThisMachinesOwn(t *testing.T) {
	owners := func(name string, f policy.Fact[[]string]) func(*world) {
		return func(w *world) { w.facts.Owners[name] = f }
	}
	bare := func(w *world) { w.facts.NodeMachine = know(policy.Machine{ID: machineA, NodeName: nodeA}) }
	run(t, []namedCase{
		{"another machine's address", serving(t, nodeA, addrB), nil, trace.Deny, "address-assigned"},
		{"another machine's address beside its own", serving(t, addrA, addrB), nil, trace.Deny, "address-assigned"},
		{"another machine's name", serving(t, nodeB, addrA), nil, trace.Deny, "name-assigned"},
		{"another machine's name beside its own", serving(t, nodeA, nodeB), nil, trace.Deny, "name-assigned"},
		{"nobody's address", serving(t, "192.168.64.99"), nil, trace.Deny, "address-assigned"},
		{"nobody's name", serving(t, "example.com"), nil, trace.Deny, "name-assigned"},
		{"a name that only begins like its own", serving(t, nodeA+".example.com"), nil, trace.Deny, "name-assigned"},
		{"a name that its own only ends with", serving(t, "muster.internal"), nil, trace.Deny, "name-assigned"},
		{"its own address, mapped into IPv6", serving(t, addrA), func(w *world) {
			w.object.Spec.Request = rawNames(t, pkitest.GeneralName{Tag: 7, Value: netip.MustParseAddr("::ffff:" + addrA).AsSlice()})
		}, trace.Approve, ""},
		{"another's address, mapped into IPv6", serving(t, addrA), func(w *world) {
			w.object.Spec.Request = rawNames(t, pkitest.GeneralName{Tag: 7, Value: netip.MustParseAddr("::ffff:" + addrB).AsSlice()})
		}, trace.Deny, "address-assigned"},
		{"its address, IPv4-compatible, which is another address", serving(t, addrA), func(w *world) {
			w.object.Spec.Request = rawNames(t, pkitest.GeneralName{Tag: 7, Value: netip.MustParseAddr("::" + addrA).AsSlice()})
		}, trace.Deny, "address-assigned"},
		{"two machines have the address", serving(t, addrA), owners(addrA, know([]string{machineA, machineB})), trace.Wait, "address-assigned"},
		{"two machines have the name", serving(t, nodeA), owners(nodeA, know([]string{machineB, machineA})), trace.Wait, "name-assigned"},
		{"who else has it is not known", serving(t, addrA), owners(addrA, policy.DontKnow[[]string]("test", "broken")), trace.Wait, "address-assigned"},
		{"who else has it was not asked", serving(t, addrA), func(w *world) { w.facts.Owners = nil }, trace.Wait, "address-assigned"},
		{"it was the machine's a moment ago", serving(t, addrA), owners(addrA, know([]string(nil))), trace.Wait, "address-assigned"},
		{"no addresses are assigned yet", serving(t, addrA), bare, trace.Wait, "address-assigned"},
		{"the node's name counts without a list of names", serving(t, nodeA), bare, trace.Approve, ""},
	})
}

func TestDenySpeaksBeforeWait(t *testing.T) {
	w := serving(t, addrB)
	w.facts.Access = policy.Fact[bool]{}
	w.must(t, trace.Deny, "address-assigned")
}
