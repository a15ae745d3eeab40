// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"crypto/x509/pkix"
	"net/netip"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

const (
	machineA = "i-0000000000000000a"
	machineB = "i-0000000000000000b"
	nodeA    = "ip-192-168-64-11.ec2.internal"
	nodeB    = "ip-192-168-64-12.ec2.internal"
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
		ReservedNames:     []string{"api.ec2.internal"},
		ReservedAddresses: []netip.Prefix{netip.MustParsePrefix("10.100.0.0/16"), netip.MustParsePrefix("192.168.64.1/32"), netip.MustParsePrefix("192.168.64.2/32")},
	}}
	w.object.CreationTimestamp = metav1.NewTime(now)
	w.object.Spec = certificatesv1.CertificateSigningRequestSpec{
		SignerName: signer, Request: pem, Username: user, Groups: append(groups, "system:authenticated"),
		Usages: []certificatesv1.KeyUsage{"digital signature", "client auth"},
	}
	if signer == pki.SignerKubeletServing {
		w.object.Spec.Usages[1] = "server auth"
	}
	a := machine(machineA, nodeA, addrA)
	w.facts = policy.Facts{
		TokenMachine: know(a), NodeMachine: know(a), Access: know(true), Elsewhere: policy.None[string]("test", now),
		TokenSpent: know(false), Nodes: map[string]policy.Fact[bool]{nodeB: know(false)},
		Node: know(false), LastMachine: policy.None[policy.MachineRef]("test", now), KeyOwner: policy.None[string]("test", now),
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

func (w *world) decide() decision.Decision { return w.decideAt(now) }

func (w *world) decideAt(at time.Time) decision.Decision {
	r := policy.Read(&w.object, w.policy)
	if w.request != nil {
		r = *w.request
	}
	return policy.Decide(w.policy, r, w.facts, at)
}

func (w *world) approvedAlready() {
	w.object.Status.Conditions = append(w.object.Status.Conditions,
		certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: "True", Reason: "KubectlApprove"})
}

// must checks the verdict and the rule that decided.
func (w *world) must(t *testing.T, verdict decision.Verdict, rule decision.RuleID) {
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
	verdict decision.Verdict
	rule    decision.RuleID
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

// all signers of the issue: the two of kubelets, the others of upstream, and custom ones of both kinds.
func allSigners(t testing.TB) map[string]pki.Profile {
	t.Helper()
	signers := map[string]pki.Profile{}
	for _, name := range []string{pki.SignerKubeletClient, pki.SignerKubeletServing, pki.SignerClient, pki.SignerLegacyUnknown} {
		p, ok := pki.ProfileFor(name)
		if !ok {
			t.Fatalf("%s has no profile", name)
		}
		signers[name] = p
	}
	for name, kind := range map[string]string{appServing: pki.KindServing, appClient: pki.KindClient} {
		p, err := pki.CustomProfile(name, kind)
		if err != nil {
			t.Fatal(err)
		}
		signers[name] = p
	}
	return signers
}

const (
	appServing = "beta.eks.amazonaws.com/app-serving"
	appClient  = "example.com/client"
)

// person is a request that a person approved, for a signer that nothing else is approved for.
func person(t testing.TB, signer string, subject pkix.Name, names ...string) *world {
	t.Helper()
	w := pending(t, signer, subject, names...)
	w.approvedAlready()
	return w
}

func pending(t testing.TB, signer string, subject pkix.Name, names ...string) *world {
	t.Helper()
	template := pkitest.Template("", names...)
	template.Subject = subject
	w := base(signer, pkitest.Encode(t, pkitest.Key(t), template), "kubernetes-admin", "system:masters")
	w.policy.Signers = allSigners(t)
	w.object.Spec.Usages = []certificatesv1.KeyUsage{"client auth"}
	if signer == appServing || signer == pki.SignerLegacyUnknown {
		w.object.Spec.Usages = []certificatesv1.KeyUsage{"digital signature", "key encipherment", "server auth"}
	}
	w.facts = policy.Facts{KeyOwner: w.facts.KeyOwner, Owners: w.facts.Owners, Nodes: w.facts.Nodes} // nobody looks for a machine
	for _, n := range names {
		w.facts.Nodes[n] = know(false)
		if _, ok := w.facts.Owners[n]; !ok {
			w.facts.Owners[n] = policy.None[[]string]("test", now)
		}
	}
	return w
}
