// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"crypto/ecdsa"
	"crypto/x509/pkix"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
)

type generator struct {
	*rand.Rand
	requests map[string][]byte
	key      *ecdsa.PrivateKey
	signers  map[string]pki.Profile
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// often returns the first value nine times in ten.
func often[T any](r *rand.Rand, usual T, others ...T) T {
	if len(others) == 0 || r.IntN(10) > 0 {
		return usual
	}
	return pick(r, others...)
}

// fact is mostly what it was, and sometimes not known, absent or old.
func fact[T any](r *rand.Rand, f policy.Fact[T]) policy.Fact[T] {
	f.State = often(r, f.State, policy.Known, policy.Absent, policy.Unknown)
	f.At = often(r, f.At, now.Add(-time.Hour), time.Time{})
	return f
}

func (g generator) machine(id, node, addr string) policy.Fact[policy.Machine] {
	m := policy.Machine{
		ID: often(g.Rand, id, machineA, machineB), NodeName: often(g.Rand, node, nodeA, nodeB, ""), Deleting: g.IntN(20) == 0,
		Names:     often(g.Rand, []string{node}, nil, []string{nodeA, nodeB}, []string{"kubernetes"}),
		Addresses: often(g.Rand, []netip.Addr{netip.MustParseAddr(addr)}, nil, []netip.Addr{netip.MustParseAddr("10.100.0.1")}),
		Group:     often(g.Rand, "workers", "", "other"),
		Created:   often(g.Rand, now.Add(-time.Hour), time.Time{}, now.Add(-3*time.Hour), now.Add(time.Hour)),
		Ranges:    often(g.Rand, nil, []netip.Prefix{netip.MustParsePrefix("192.168.64.0/24")}),
	}
	return fact(g.Rand, know(m))
}

// everyName that is asked for, and the node that it belongs to.
var (
	everyName = []string{
		nodeA, nodeB, addrA, addrB, "10.100.0.1", "kubernetes", "a.default.svc", shout(nodeA), shout(nodeB), nodeA + ".", "KUBERNETES", "*.ec2.internal",
		mapped + addrA, mapped + addrB, mapped + "10.100.0.1",
	}
	owner = map[string]string{nodeA: nodeA, addrA: nodeA, nodeB: nodeB, addrB: nodeB, shout(nodeA): nodeA, shout(nodeB): nodeB, mapped + addrA: nodeA, mapped + addrB: nodeB}
)

// mapped begins an IPv4 address that is written as an IPv6 one.
const mapped = "::ffff:"

func shout(name string) string { return strings.ToUpper(name) }

// asked are the bytes of names as they are, in a request.
func asked(t *testing.T, names []string) pkix.Extension {
	t.Helper()
	var all []pkitest.GeneralName
	for _, n := range names {
		if a, err := netip.ParseAddr(n); err == nil {
			all = append(all, pkitest.GeneralName{Tag: 7, Value: a.AsSlice()})
		} else {
			all = append(all, pkitest.GeneralName{Tag: 2, Value: []byte(n)})
		}
	}
	return pkitest.SAN(t, all...)
}

// bound are the groups that bind tokens, with what each of them means.
var bound = []string{
	"system:bootstrappers:muster:" + machineA, "system:bootstrappers:muster:" + machineB,
	"system:bootstrappers:muster:name:ip-192-168-64-11:ec2:internal", "system:bootstrappers:muster:name:ip-192-168-64-12:ec2:internal",
	"system:bootstrappers:muster:group:workers", "system:bootstrappers:muster:group:other",
	"system:bootstrappers:muster:pattern:" + fmt.Sprintf("%x", "ip-*-11.ec2.internal"), "system:bootstrappers:muster:zone:a",
	"system:bootstrappers:muster:rejoin:ip-192-168-64-11:ec2:internal", "system:bootstrappers:muster:rejoin:ip-192-168-64-12:ec2:internal",
}

func (g generator) groups() []string {
	var groups []string
	for _, group := range []string{"system:nodes", "system:bootstrappers", kubeadm} {
		if g.IntN(3) > 0 {
			groups = append(groups, group)
		}
	}
	for range g.IntN(3) {
		groups = append(groups, pick(g.Rand, bound...))
	}
	return groups
}

func (g generator) policy() policy.Policy {
	p := base("", nil, "").policy
	p.Signers = g.signers
	p.Bootstrap.UnboundTokens = g.IntN(3) == 0
	p.Bootstrap.Window = pick(g.Rand, 0, 0, 2*time.Hour)
	p.RequireCredential = g.IntN(5) == 0
	p.ApprovalReasons = pick(g.Rand, nil, nil, []string{"Ticketed"})
	if g.IntN(3) == 0 {
		p.Bootstrap.Bindings = []policy.Binding{{
			Group:         kubeadm,
			NodeNames:     pick(g.Rand, nil, []string{"ip-*-11.ec2.internal"}, []string{"worker-*"}),
			MachineGroups: pick(g.Rand, nil, []string{"workers"}),
		}}
	}
	return p
}

// request is the bytes and the node that they are about, in most worlds; they are made once for each content.
func (g generator) request(t *testing.T, signer, node string) []byte {
	t.Helper()
	var names []string
	for _, n := range everyName {
		twice := strings.HasPrefix(n, mapped) && slices.Contains(names, strings.TrimPrefix(n, mapped)) // which the reader refuses
		if !twice && (g.IntN(40) == 0 || owner[n] == node && g.IntN(3) == 0) {
			names = append(names, n)
		}
	}
	profile := g.signers[signer]
	if profile.Names == pki.NamesNone && g.IntN(10) > 0 {
		names = nil
	}
	subject := pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}
	if !profile.Node && g.IntN(10) > 0 {
		subject = pkix.Name{CommonName: pick(g.Rand, "vip", "a.default.svc", "kubernetes"), Organization: pick(g.Rand, nil, []string{"newlands"}, []string{"system:masters"})}
	}
	id := strings.Join(append([]string{subject.String()}, names...), " ")
	if g.requests[id] == nil {
		template := pkitest.Template(node)
		if template.Subject = subject; len(names) > 0 {
			template.ExtraExtensions = []pkix.Extension{asked(t, names)}
		}
		g.requests[id] = pkitest.Encode(t, g.key, template)
	}
	return g.requests[id]
}

func (g generator) world(t *testing.T) *world {
	t.Helper()
	node := pick(g.Rand, nodeA, nodeB)
	signer := pick(g.Rand, append(slices.Sorted(maps.Keys(g.signers)), pki.SignerKubeletClient, pki.SignerKubeletServing, pki.SignerKubeletServing)...)
	usual := "system:node:" + node
	if signer == pki.SignerKubeletClient {
		usual = "system:bootstrap:abcdef"
	}
	w := base(signer, g.request(t, signer, node), pick(g.Rand, usual, usual, "system:node:"+nodeA, "system:node:"+nodeB, "system:bootstrap:abcdef", "alice"))
	w.object.Spec.Groups = g.groups()
	w.policy = g.policy()
	auth := certificatesv1.KeyUsage("client auth")
	if signer == pki.SignerKubeletServing || signer == appServing {
		auth = "server auth"
	}
	w.object.Spec.Usages = often(g.Rand, []certificatesv1.KeyUsage{"digital signature", auth}, []certificatesv1.KeyUsage{"client auth", "server auth"})
	nodeMachine := g.machine(machineA, nodeA, addrA)
	if node == nodeB {
		nodeMachine = g.machine(machineB, nodeB, addrB)
	}
	w.facts = policy.Facts{
		TokenMachine: pick(g.Rand, g.machine(machineA, nodeA, addrA), g.machine(machineB, nodeB, addrB)), NodeMachine: nodeMachine,
		Elsewhere: often(g.Rand, policy.None[string]("test", now), know("blue"), policy.DontKnow[string]("test", ""), policy.None[string]("test", now.Add(-time.Hour))),
		Access:    fact(g.Rand, know(g.IntN(5) > 0)), Node: fact(g.Rand, know(g.IntN(3) == 0)),
		LastMachine: fact(g.Rand, know(pick[policy.MachineRef](g.Rand, machineA, machineB, "test|"+machineA, "other|"+machineB, ""))),
		Expired:     fact(g.Rand, know(g.IntN(2) == 0)),
		KeyOwner:    fact(g.Rand, pick(g.Rand, policy.None[string]("test", now), know(nodeA), know(nodeB), know("user:vip"))),
		Credential: fact(g.Rand, know(policy.Credential{
			Machine: pick[policy.MachineRef](g.Rand, machineA, machineB, "test|"+machineA, "other|"+machineB, ""), Replaced: g.IntN(2) == 0, Rejoined: g.IntN(2) == 0,
			Since: pick(g.Rand, time.Time{}, now.Add(-2*time.Hour), now.Add(-time.Hour), now.Add(-10*time.Minute)),
		})),
		TokenSpent: fact(g.Rand, know(g.IntN(5) == 0)),
		Nodes:      map[string]policy.Fact[bool]{},
		Owners:     map[string]policy.Fact[[]string]{},
	}
	w.object.Spec.Extra = pick(g.Rand, nil, map[string]certificatesv1.ExtraValue{credentialID: {"X509SHA256=" + strings.Repeat("0a", 32)}})
	if g.IntN(3) == 0 {
		w.object.Spec.Extra = maps.Clone(w.object.Spec.Extra)
		if w.object.Spec.Extra == nil {
			w.object.Spec.Extra = map[string]certificatesv1.ExtraValue{}
		}
		w.object.Spec.Extra["sessionName"] = pick(g.Rand, certificatesv1.ExtraValue{machineA}, certificatesv1.ExtraValue{machineB}, certificatesv1.ExtraValue{"anna"})
	}
	for _, n := range everyName {
		w.facts.Nodes[n] = fact(g.Rand, know(g.IntN(8) == 0))
		usual := map[string][]string{nodeA: {machineA}, nodeB: {machineB}}[owner[n]]
		w.facts.Owners[n] = fact(g.Rand, know(often(g.Rand, usual, []string{machineA}, []string{machineB}, []string{machineA, machineB}, nil)))
	}
	if g.IntN(3) == 0 || g.signers[signer].Manual && g.IntN(4) > 0 {
		verdict := often(g.Rand, certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed)
		reason := pick(g.Rand, "KubectlApprove", "ApprovedByOperator", "AutoApproved", "Ticketed", "Robot", "")
		w.object.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: verdict, Reason: reason}}
	}
	return w
}
