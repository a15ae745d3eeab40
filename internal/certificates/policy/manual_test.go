// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"crypto/x509/pkix"
	"slices"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

// vip is the user of many guides, as cfssl writes it.
func vip() pkix.Name {
	return pkix.Name{
		Country: []string{"NZ"}, Province: []string{"Wellington"}, Locality: []string{"Wellington"},
		Organization: []string{"newlands"}, OrganizationalUnit: []string{"Test"}, CommonName: "vip",
	}
}

func user(name string, groups ...string) pkix.Name {
	return pkix.Name{CommonName: name, Organization: groups}
}

func usages(u ...certificatesv1.KeyUsage) func(*world) {
	return func(w *world) { w.object.Spec.Usages = u }
}

func TestPeopleApproveWhatNoFactVouchesFor(t *testing.T) {
	day := int32(86400)
	expires := func(w *world) { w.object.Spec.ExpirationSeconds = &day }
	run(t, []namedCase{
		{"vip, pending", pending(t, pki.SignerClient, vip()), expires, decision.Ignore, "manual-approval"},
		{"vip, approved", person(t, pki.SignerClient, vip()), expires, decision.Approve, ""},
		{"vip with all usages", person(t, pki.SignerClient, vip()), usages("key encipherment", "digital signature", "client auth"), decision.Approve, ""},
		{"a user in three groups", person(t, pki.SignerClient, user("alice", "dev", "ops", "a")), nil, decision.Approve, ""},
		{"a user in no group", person(t, pki.SignerClient, user("alice")), nil, decision.Approve, ""},
		{"what is wrong is still left to people", pending(t, pki.SignerClient, user("alice", "system:masters")), nil, decision.Ignore, "manual-approval"},
		{"bytes that cannot be read, too", pending(t, pki.SignerClient, vip()), func(w *world) { w.object.Spec.Request = nil }, decision.Ignore, "manual-approval"},
		{"bytes that cannot be read, approved", person(t, pki.SignerClient, vip()), func(w *world) { w.object.Spec.Request = nil }, decision.Deny, "shape"},
		{"denied", pending(t, pki.SignerClient, vip()), func(w *world) {
			w.object.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
		}, decision.Ignore, "undecided"},
		{"another client's signer", person(t, appClient, user("alice")), nil, decision.Approve, ""},
		{"another client's signer, pending", pending(t, appClient, user("alice")), nil, decision.Ignore, "manual-approval"},
		{"a signer that is not served", person(t, pki.SignerClient, vip()), func(w *world) { w.policy.Signers = nil }, decision.Ignore, "signer"},
		{"a signer with another's profile", person(t, pki.SignerClient, vip()), func(w *world) {
			w.policy.Signers[pki.SignerClient] = w.policy.Signers[pki.SignerKubeletClient]
		}, decision.Ignore, "signer"},
		{"a signer with a profile from elsewhere", renewal(t), func(w *world) {
			p := pki.ClientProfile()
			p.Node = false
			w.policy.Signers = map[string]pki.Profile{pki.SignerKubeletClient: p}
		}, decision.Ignore, "signer"},
		{"no signers at all", renewal(t), func(w *world) { w.policy.Signers = map[string]pki.Profile{} }, decision.Ignore, "signer"},
		{"kubelets' requests among all signers", serving(t, addrA), func(w *world) { w.policy.Signers = allSigners(t) }, decision.Approve, ""},
		{"server auth for a user", person(t, pki.SignerClient, vip()), usages("client auth", "server auth"), decision.Deny, "usages"},
		{"no client auth for a user", person(t, pki.SignerClient, vip()), usages("digital signature"), decision.Deny, "usages"},
		{"names for a user", person(t, pki.SignerClient, vip(), "vip.example.com"), nil, decision.Deny, "name-count"},
		{"eleven years", person(t, pki.SignerClient, vip()), func(w *world) { s := int32(11 * 365 * 86400); w.object.Spec.ExpirationSeconds = &s }, decision.Deny, "expiration"},
	})
}

// A person is told what would come of an approval.
func TestManualApprovalTellsWhatIsWrong(t *testing.T) {
	d := pending(t, pki.SignerClient, user("alice", "system:masters"), "a.example").decide()
	for _, id := range []decision.RuleID{"identity-reserved", "name-count"} {
		if !slices.ContainsFunc(d.Checks, func(c decision.Check) bool { return c.Rule == id && c.Outcome == decision.Refuse }) {
			t.Errorf("nothing about %s:\n%s", id, d)
		}
	}
	if q := policy.Ask(allSignersPolicy(t), policy.Read(&pending(t, pki.SignerClient, vip()).object, allSignersPolicy(t))); q.Key != (pki.Fingerprint{}) {
		t.Errorf("facts are asked for before a person spoke: %+v", q)
	}
}

func allSignersPolicy(t *testing.T) policy.Policy {
	t.Helper()
	return policy.Policy{Signers: allSigners(t)}
}

func TestReservedIdentities(t *testing.T) {
	for _, subject := range []pkix.Name{
		user("alice", "system:masters"), user("alice", "ops", "system:masters"), user("alice", "system:nodes"),
		user("alice", "System:Masters"), user("alice", " system:masters"), user("alice", "kubeadm:cluster-admins"),
		user("alice", "eks:anything"), user("alice", "muster:administrators"), user("alice", "system:serviceaccounts"),
		user("system:node:" + nodeA), user("system:node:" + nodeA + " "), user("SYSTEM:NODE:a"), user("system:kube-controller-manager"),
		user("system:serviceaccount:kube-system:default"), user("system:apiserver"), user("system:bootstrap:abcdef"),
		user("system:anonymous"), user("eks:certificate-controller"), user("kube-apiserver-kubelet-client"),
		user("front-proxy-client"), user("kubernetes-admin"), user("Kubernetes"), user("aggregator"),
	} {
		for _, signer := range []string{pki.SignerClient, pki.SignerLegacyUnknown, appServing, appClient} {
			t.Run(subject.String()+" "+signer, func(t *testing.T) {
				person(t, signer, subject).must(t, decision.Deny, "identity-reserved")
			})
		}
	}
	run(t, []namedCase{
		{"a name that only holds the word", person(t, pki.SignerClient, user("mysystem:node:a", "ecosystem:nodes")), nil, decision.Approve, ""},
		{"a name that only begins like one", person(t, pki.SignerClient, user("kubernetes-reader", "systems")), nil, decision.Approve, ""},
	})
}

func TestOtherServingCertificates(t *testing.T) {
	const svc = "myserver.default.svc"
	owners := func(name string, f policy.Fact[[]string]) func(*world) {
		return func(w *world) { w.facts.Owners[name] = f }
	}
	for _, signer := range []string{appServing, pki.SignerLegacyUnknown} {
		of := func(subject pkix.Name, names ...string) *world { return person(t, signer, subject, names...) }
		run(t, []namedCase{
			{signer + ": EKS's example", of(user(svc)), nil, decision.Approve, ""},
			{signer + ": pending", pending(t, signer, user(svc)), nil, decision.Ignore, "manual-approval"},
			{signer + ": names of a Service", of(user("myserver"), svc, svc+".cluster.local", "10.20.0.1"), nil, decision.Approve, ""},
			{signer + ": server auth alone", of(user(svc)), usages("server auth"), decision.Approve, ""},
			{signer + ": cert sign", of(user(svc)), usages("server auth", "cert sign"), decision.Deny, "usages"},
			{signer + ": crl sign", of(user(svc)), usages("server auth", "crl sign"), decision.Deny, "usages"},
			{signer + ": any", of(user(svc)), usages("server auth", "any"), decision.Deny, "usages"},
			{signer + ": a usage twice", of(user(svc)), usages("server auth", "server auth"), decision.Deny, "usages"},
			{signer + ": no usage", of(user(svc)), usages(), decision.Deny, "usages"},
			{signer + ": the API server's name", of(user(svc), "kubernetes.default.svc"), nil, decision.Deny, "name-reserved"},
			{signer + ": the API server's short name", of(user(svc), "kubernetes"), nil, decision.Deny, "name-reserved"},
			{signer + ": the API server's full name", of(user(svc), "kubernetes.default.svc.cluster.local"), nil, decision.Deny, "name-reserved"},
			{signer + ": a name below the API server's", of(user(svc), "a.kubernetes.default.svc"), nil, decision.Deny, "name-reserved"},
			{signer + ": a name that the operator reserved", of(user(svc), "api.ec2.internal"), nil, decision.Deny, "name-reserved"},
			{signer + ": the domain of Services", of(user(svc), "cluster.local"), nil, decision.Deny, "name-reserved"},
			{signer + ": localhost", of(user(svc), "localhost"), nil, decision.Deny, "name-reserved"},
			{signer + ": a wildcard over the API server", of(user(svc), "*.default.svc"), nil, decision.Deny, "name-canonical"},
			{signer + ": the API server's name as common name", of(user("kubernetes.default.svc")), nil, decision.Deny, "name-reserved"},
			{signer + ": the same in upper case, with a dot", of(user("Kubernetes.Default.svc.")), nil, decision.Deny, "name-reserved"},
			{signer + ": a wildcard as common name", of(user("*.default.svc")), nil, decision.Deny, "name-reserved"},
			{signer + ": a reserved address as common name", of(user("10.100.0.1")), nil, decision.Deny, "name-reserved"},
			{signer + ": an operator's name as common name", of(user("API.ec2.internal")), nil, decision.Deny, "name-reserved"},
			{signer + ": the API server's address", of(user(svc), "10.100.0.1"), nil, decision.Deny, "address-reserved"},
			{signer + ": loopback", of(user(svc), "127.0.0.1"), nil, decision.Deny, "address-reserved"},
			{signer + ": a machine's name", of(user(svc), nodeA), nil, decision.Deny, "name-of-machine"},
			{signer + ": a machine's address", of(user(svc), svc, addrA), nil, decision.Deny, "name-of-machine"},
			{signer + ": whose the name is, is not known", of(user(svc), svc), owners(svc, policy.DontKnow[[]string]("test", "broken")), decision.Wait, "name-of-machine"},
			{signer + ": whose the name is was not asked", of(user(svc), svc), func(w *world) { w.facts.Owners = nil }, decision.Wait, "name-of-machine"},
			{signer + ": nobody's name, by an empty list", of(user(svc), svc), owners(svc, know([]string{})), decision.Approve, ""},
		})
	}
	run(t, []namedCase{
		{"client auth from the serving signer", person(t, appServing, user(svc)), usages("server auth", "client auth"), decision.Deny, "usages"},
		{"no server auth from the serving signer", person(t, appServing, user(svc)), usages("digital signature"), decision.Deny, "usages"},
		{"client auth from legacy-unknown", person(t, pki.SignerLegacyUnknown, user("alice")), usages("client auth", "code signing"), decision.Approve, ""},
		{"no extended usage from legacy-unknown", person(t, pki.SignerLegacyUnknown, user("alice")), usages("digital signature"), decision.Approve, ""},
		{"ocsp signing from legacy-unknown", person(t, pki.SignerLegacyUnknown, user("alice")), usages("ocsp signing"), decision.Deny, "usages"},
	})
}
