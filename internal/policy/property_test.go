// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"crypto/ecdsa"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/pki"
	"muster.dev/muster/internal/pki/pkitest"
	"muster.dev/muster/internal/policy"
	"muster.dev/muster/internal/trace"
)

// TestNothingReachableApprovesAnotherMachinesName draws requests and facts at random from small sets, so that near misses
// are common, and checks every approval against what may be approved at all, written down a second time and without the rules.
func TestNothingReachableApprovesAnotherMachinesName(t *testing.T) {
	const rounds = 15_000
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	g := generator{Rand: r, requests: map[string][]byte{}, key: pkitest.Key(t)}
	approved := map[string]int{}
	for range rounds {
		w := g.world(t)
		d := w.decide()
		if d.Verdict != trace.Approve {
			continue
		}
		approved[w.object.Spec.SignerName]++
		if why := w.mustNotBeApproved(t); why != "" {
			t.Fatalf("seed %d: approved although %s\n%+v\n%+v\n%s", seed, why, w.object.Spec, w.facts, d)
		}
	}
	if approved[pki.SignerKubeletClient] < rounds/1000 || approved[pki.SignerKubeletServing] < rounds/2000 {
		t.Errorf("too few approvals to mean anything: %v", approved)
	}
}

type generator struct {
	*rand.Rand
	requests map[string][]byte
	key      *ecdsa.PrivateKey
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// often returns the first value nine times in ten.
func often[T any](r *rand.Rand, usual T, others ...T) T {
	if len(others) == 0 || r.IntN(10) > 0 {
		return usual
	}
	return pick(r, others...)
}

func (g generator) machine(id, node, addr string) policy.Fact[policy.Machine] {
	m := policy.Machine{
		ID: often(g.Rand, id, machineA, machineB), NodeName: often(g.Rand, node, nodeA, nodeB, ""), Deleting: g.IntN(20) == 0,
		Names:     often(g.Rand, []string{node}, nil, []string{nodeA, nodeB}, []string{"kubernetes"}),
		Addresses: often(g.Rand, []netip.Addr{netip.MustParseAddr(addr)}, nil, []netip.Addr{netip.MustParseAddr("10.100.0.1")}),
	}
	f := know(m)
	f.State = often(g.Rand, policy.Known, policy.Absent, policy.Unknown)
	f.At = often(g.Rand, now, now.Add(-time.Hour), time.Time{})
	return f
}

func (g generator) owners() policy.Fact[[]string] {
	f := know(pick(g.Rand, []string{machineA}, []string{machineB}, []string{machineA, machineB}, nil))
	f.State = often(g.Rand, policy.Known, policy.Absent, policy.Unknown)
	f.At = often(g.Rand, now, now.Add(-time.Hour))
	return f
}

func (g generator) world(t *testing.T) *world {
	t.Helper()
	node := pick(g.Rand, nodeA, nodeB)
	var names []string
	for _, n := range []string{nodeA, nodeB, addrA, addrB, "10.100.0.1", "kubernetes"} {
		if g.IntN(5) == 0 {
			names = append(names, n)
		}
	}
	signer := pick(g.Rand, pki.SignerKubeletClient, pki.SignerKubeletServing)
	if signer == pki.SignerKubeletClient && g.IntN(10) > 0 {
		names = nil
	}
	id := strings.Join(append([]string{node}, names...), " ")
	if g.requests[id] == nil {
		g.requests[id] = pkitest.Encode(t, g.key, pkitest.Template(node, names...))
	}
	w := base(signer, g.requests[id], pick(g.Rand, "system:node:"+nodeA, "system:node:"+nodeB, "system:bootstrap:abcdef", "alice"))
	var groups []string
	for _, group := range []string{"system:nodes", "system:bootstrappers", "system:bootstrappers:muster:" + machineA, "system:bootstrappers:muster:" + machineB} {
		if g.IntN(2) == 0 {
			groups = append(groups, group)
		}
	}
	w.object.Spec.Groups = groups
	tokenMachine := pick(g.Rand, g.machine(machineA, nodeA, addrA), g.machine(machineB, nodeB, addrB))
	nodeMachine := g.machine(machineA, nodeA, addrA)
	if node == nodeB {
		nodeMachine = g.machine(machineB, nodeB, addrB)
	}
	access := know(g.IntN(5) > 0)
	access.State = often(g.Rand, policy.Known, policy.Absent, policy.Unknown)
	w.facts = policy.Facts{TokenMachine: tokenMachine, NodeMachine: nodeMachine, Access: access, Owners: map[string]policy.Fact[[]string]{}}
	for _, n := range names {
		w.facts.Owners[n] = g.owners()
	}
	if g.IntN(4) == 0 {
		w.object.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: pick(g.Rand,
			certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed)}}
	}
	return w
}

// mustNotBeApproved says what is wrong with an approval.
func (w *world) mustNotBeApproved(t *testing.T) string {
	t.Helper()
	spec := w.object.Spec
	csr, err := pki.Parse(spec.Request)
	if err != nil {
		t.Fatal(err)
	}
	f := w.facts
	m := f.NodeMachine.Value
	person := slices.ContainsFunc(w.object.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	})
	isNode := strings.HasPrefix(spec.Username, "system:node:") && slices.Contains(spec.Groups, "system:nodes")
	isToken := spec.Username == "system:bootstrap:abcdef" && slices.Contains(spec.Groups, "system:bootstrappers")
	bound := isToken && slices.Contains(spec.Groups, "system:bootstrappers:muster:"+machineA) != slices.Contains(spec.Groups, "system:bootstrappers:muster:"+machineB)
	switch {
	case f.NodeMachine.State != policy.Known || now.Sub(f.NodeMachine.At) > 2*time.Minute:
		return "the machine is not known"
	case csr.CommonName() != "system:node:"+m.NodeName:
		return "the machine is another node"
	case m.Deleting:
		return "the machine is being deleted"
	case isNode && spec.Username != csr.CommonName():
		return "a node asks for another"
	case !isNode && !bound && !person:
		return "nobody vouches for the requester"
	case isToken && spec.SignerName != pki.SignerKubeletClient && !person:
		return "a token asks for a serving certificate"
	case bound && (f.TokenMachine.State != policy.Known || f.TokenMachine.Value.NodeName != m.NodeName || f.TokenMachine.Value.ID != m.ID || !slices.Contains(spec.Groups, "system:bootstrappers:muster:"+m.ID)):
		return "the token is another machine's"
	case (f.Access.State != policy.Known || !f.Access.Value) && !person:
		return "access was not reviewed"
	case len(w.object.Status.Conditions) > 0 && !person:
		return "it was decided"
	}
	own := append([]string{m.NodeName}, m.Names...)
	for _, a := range m.Addresses {
		own = append(own, a.String())
	}
	names := csr.DNSNames()
	for _, a := range csr.Addresses() {
		names = append(names, a.String())
	}
	for _, n := range names {
		if !slices.Contains(own, n) || n == "kubernetes" || n == "10.100.0.1" {
			return n + " is not the machine's"
		}
		if o := f.Owners[n]; o.State != policy.Known || !slices.Equal(o.Value, []string{m.ID}) {
			return n + " may be another machine's, too"
		}
	}
	return ""
}
