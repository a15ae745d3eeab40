// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

const credentialID = "authentication.kubernetes.io/credential-id"

var fingerprint = pki.Fingerprint{0xab, 1, 2, 3}

// with makes the API server tell what a node asked with.
func with(ids ...string) func(*world) {
	return func(w *world) { w.object.Spec.Extra = map[string]certificatesv1.ExtraValue{credentialID: ids} }
}

func withCertificate(of string, replaced bool) func(*world) {
	return all(with("X509SHA256="+hex.EncodeToString(fingerprint[:])), func(w *world) {
		w.facts.Credential = know(policy.Credential{Machine: policy.MachineRef(of), Replaced: replaced})
	})
}

// joinedSince makes somebody join as the node after the certificate was issued.
func joinedSince(w *world) { w.facts.Credential.Value.Rejoined = true }

// issuedBefore makes the certificate this much older than the machine that the node is by now.
func issuedBefore(d time.Duration) func(*world) {
	return func(w *world) {
		w.facts.NodeMachine.Value.Created = now.Add(-time.Hour)
		w.facts.Credential.Value.Since = now.Add(-time.Hour - d)
	}
}

// lastWas makes the last certificate of the node that of a machine.
func lastWas(machine string) func(*world) {
	return func(w *world) { w.facts.LastMachine = know(policy.MachineRef(machine)) }
}

func TestANodeAsksWithACertificateOfItsMachine(t *testing.T) {
	unknown := func(f policy.Fact[policy.Credential]) func(*world) {
		return all(withCertificate("", false), func(w *world) { w.facts.Credential = f })
	}
	required := func(w *world) { w.policy.RequireCredential = true }
	for name, w := range map[string]func() *world{
		"serving": func() *world { return serving(t, nodeA, addrA) },
		"renewal": func() *world { return renewal(t) },
		"approved by this program before it was killed": func() *world {
			w := renewal(t)
			approvedBecause("AutoApproved")(w)
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, []namedCase{
				{"its own", w(), withCertificate("test|"+machineA, false), decision.Approve, ""},
				{"its own, after it replaced another", w(), withCertificate("test|"+machineA, true), decision.Approve, ""},
				{"its own, on record without a source", w(), withCertificate(machineA, false), decision.Approve, ""},
				{"that of the machine before it", w(), withCertificate("test|"+machineB, true), decision.Deny, "credential"},
				{"that of the machine before it, on record without a source", w(), withCertificate(machineB, false), decision.Deny, "credential"},
				{"that of the machine before it, approved by a person", w(), all(withCertificate("test|"+machineB, true), approvedBecause("KubectlApprove")), decision.Approve, ""},
				{"that of the machine before it, approved by another program", w(), all(withCertificate("test|"+machineB, true), approvedBecause("Robot")), decision.Deny, "credential"},
				{"that of a machine of another source", w(), withCertificate("other|"+machineB, false), decision.Approve, ""},
				{"that of a machine of another source, after one replaced another", w(), withCertificate("other|"+machineB, true), decision.Wait, "credential"},
				{"on no record", w(), withCertificate("", false), decision.Approve, ""},
				{"on no record, after one replaced another", w(), withCertificate("", true), decision.Wait, "credential"},
				{"on no record, and another machine took over", w(), all(withCertificate("", false), lastWas("test|"+machineB)), decision.Wait, "credential"},
				{"of another source, and another machine took over", w(), all(withCertificate("other|"+machineB, false), lastWas("test|"+machineB)), decision.Wait, "credential"},
				{"on no record, and no other machine took over", w(), all(withCertificate("", false), lastWas("test|"+machineA)), decision.Approve, ""},
				{"on no record, and the machine before is of another source", w(), all(withCertificate("", false), lastWas("other|"+machineB)), decision.Approve, ""},
				{"on no record, and somebody joined as the node since", w(), all(withCertificate("", false), joinedSince), decision.Wait, "credential"},
				{"on no record, and the machine joined that it is by now", w(), all(withCertificate("", false), joinedSince, lastWas("test|"+machineA)), decision.Wait, "credential"},
				{"on no record, and older than the machine", w(), all(withCertificate("", false), issuedBefore(10*time.Minute)), decision.Wait, "credential"},
				{"on no record, and as old as the machine, but for backdating", w(), all(withCertificate("", false), issuedBefore(pki.Backdate)), decision.Approve, ""},
				{"its own, and older than the object of the machine", w(), all(withCertificate("test|"+machineA, false), issuedBefore(time.Hour)), decision.Approve, ""},
				{"of another source, and somebody joined as the node since", w(), all(withCertificate("other|"+machineB, false), joinedSince), decision.Wait, "credential"},
				{"its own, and it joined again since", w(), all(withCertificate("test|"+machineA, false), joinedSince), decision.Approve, ""},
				{"what is on record is not known", w(), unknown(policy.DontKnow[policy.Credential]("test", "broken")), decision.Wait, "credential"},
				{"what is on record was not asked", w(), unknown(policy.Fact[policy.Credential]{}), decision.Wait, "credential"},
				{"absent", w(), unknown(policy.None[policy.Credential]("test", now)), decision.Wait, "credential"},
				{"not told", w(), nil, decision.Approve, ""},
				{"not told, and the policy wants it", w(), required, decision.Wait, "credential"},
				{"told, as the policy wants it", w(), all(required, withCertificate("", false)), decision.Approve, ""},
				{"a token's", w(), all(required, with("JTI=4711")), decision.Wait, "credential"},
				{"two", w(), all(required, with("X509SHA256="+strings.Repeat("0", 64), "X509SHA256="+strings.Repeat("1", 64))), decision.Wait, "credential"},
				{"a short one", w(), all(required, with("X509SHA256=00")), decision.Wait, "credential"},
				{"one that is no number", w(), all(required, with("X509SHA256="+strings.Repeat("x", 64))), decision.Wait, "credential"},
			})
		})
	}
	run(t, []namedCase{
		{"a bootstrap token has none", bootstrap(t), required, decision.Approve, ""},
		{"nor has a person", person(t, pki.SignerClient, vip()), required, decision.Approve, ""},
	})
}

func TestCredentialIsAskedFor(t *testing.T) {
	w := renewal(t)
	withCertificate("", false)(w)
	if got := policy.Ask(w.policy, policy.Read(&w.object, w.policy)).Credential; got != fingerprint {
		t.Errorf("asked for %x", got)
	}
	w = bootstrap(t)
	withCertificate("", false)(w)
	if got := policy.Ask(w.policy, policy.Read(&w.object, w.policy)).Credential; got != (pki.Fingerprint{}) {
		t.Errorf("asked for %x, which is no node's", got)
	}
}

// A renewal does not show that the node is the machine that has its name by now.
func TestWhichMachineACertificateGoesTo(t *testing.T) {
	const a, b = "test|" + machineA, "test|" + machineB
	for _, tc := range []struct {
		name   string
		world  *world
		change func(*world)
		want   policy.MachineRef
	}{
		{"a first certificate", bootstrap(t), nil, a},
		{"one after another machine's", bootstrap(t), exists(b), a},
		{"a renewal", renewal(t), exists(a), a},
		{"a renewal of nobody on record", renewal(t), exists(""), a},
		{"a renewal by the machine before", renewal(t), exists(b), b},
		{"a serving certificate of the machine before", serving(t, addrA), exists(b), b},
		{"a renewal that a person approved", renewal(t), all(exists(b), approvedBecause("KubectlApprove")), a},
		{"a renewal that a program approved", renewal(t), all(exists(b), approvedBecause("AutoApproved")), b},
		{"a renewal of a machine of another source", renewal(t), exists("other|" + machineB), a},
		{"a renewal of nobody knows whom", renewal(t), all(exists(b), func(w *world) { w.facts.NodeMachine = policy.Fact[policy.Machine]{} }), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.change != nil {
				tc.change(tc.world)
			}
			if got := policy.GoesTo(tc.world.policy, policy.Read(&tc.world.object, tc.world.policy), tc.world.facts); got != tc.want {
				t.Errorf("to %q, not %q", got, tc.want)
			}
		})
	}
}

func TestATokenIsSpentOnce(t *testing.T) {
	spent := func(f policy.Fact[bool]) func(*world) { return func(w *world) { w.facts.TokenSpent = f } }
	run(t, []namedCase{
		{"a token that was used for the node", bootstrap(t), spent(know(true)), decision.Wait, "bootstrap-spent"},
		{"a certificate is on record, by another token", bootstrap(t), func(w *world) { w.facts.LastMachine = know(policy.MachineRef(machineA)) }, decision.Approve, ""},
		{"the node was deleted", bootstrap(t), all(spent(know(true)), func(w *world) { w.facts.Node = policy.None[bool]("test", now) }), decision.Wait, "bootstrap-spent"},
		{"the node exists", bootstrap(t), all(exists(machineA), spent(know(true))), decision.Wait, "existing-node"},
		{"the machine was replaced, by the same token", bootstrap(t), all(exists(machineB), spent(know(true))), decision.Wait, "bootstrap-spent"},
		{"not known", bootstrap(t), spent(policy.DontKnow[bool]("test", "broken")), decision.Wait, "bootstrap-spent"},
		{"not asked", bootstrap(t), spent(policy.Fact[bool]{}), decision.Wait, "bootstrap-spent"},
		{"absent", bootstrap(t), spent(policy.None[bool]("test", now)), decision.Wait, "bootstrap-spent"},
		{"approved by a person", bootstrap(t), all(spent(know(true)), approvedBecause("KubectlApprove")), decision.Approve, ""},
		{"approved by a program", bootstrap(t), all(spent(know(true)), approvedBecause("AutoApproved")), decision.Wait, "bootstrap-spent"},
		{"a user who asks for many", renewal(t), all(asUser("vip", "ip-*.ec2.internal"), spent(policy.Fact[bool]{})), decision.Approve, ""},
		{"a renewal", renewal(t), spent(policy.Fact[bool]{}), decision.Approve, ""},
	})
}

func TestOnlyPeopleArePeople(t *testing.T) {
	trusted := func(w *world) { w.policy.ApprovalReasons = []string{"Ticketed", "AutoApproved"} }
	for reason, want := range map[string]decision.Verdict{
		"KubectlApprove": decision.Approve, "ApprovedByOperator": decision.Approve, "AutoApproved": decision.Wait, "": decision.Wait, "Robot": decision.Wait, "kubectlapprove": decision.Wait,
	} {
		t.Run(reason, func(t *testing.T) {
			w := bootstrap(t)
			all(exists(machineA), approvedBecause(reason))(w)
			if d := w.decide(); d.Verdict != want {
				t.Errorf("want %s\n%s", want, d)
			}
		})
	}
	run(t, []namedCase{
		{"a reason of the policy's", bootstrap(t), all(exists(machineA), trusted, approvedBecause("Ticketed")), decision.Approve, ""},
		{"a reason of programs, in the policy", bootstrap(t), all(exists(machineA), trusted, approvedBecause("AutoApproved")), decision.Wait, "existing-node"},
		{"a stranger, approved by a program", renewal(t), all(func(w *world) { w.object.Spec.Username = "alice" }, approvedBecause("Robot")), decision.Ignore, "requester"},
		{"a token for a serving certificate, approved by a program", bootstrap(t), all(func(w *world) {
			w.object.Spec = serving(t, addrA).object.Spec
			w.object.Spec.Username, w.object.Spec.Groups = "system:bootstrap:abcdef", []string{"system:bootstrappers", "system:bootstrappers:muster:" + machineA}
		}, approvedBecause("AutoApproved")), decision.Ignore, "requester"},
	})
}
