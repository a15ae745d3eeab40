// SPDX-License-Identifier: Apache-2.0

package policyconfig_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/policyconfig"
)

func full(t testing.TB) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

const small = `apiVersion: certificates.muster.dev/v1alpha1
kind: CertificateControllerConfiguration
mode: approve-only
signers: [{name: kubernetes.io/kubelet-serving}]
inventory: {sources: [{static: {file: /etc/machines.yaml}}]}
`

func TestEverythingIsRead(t *testing.T) {
	c, err := policyconfig.Read([]byte(full(t)))
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Policy{
		AllowEd25519: true, Signers: map[string]pki.Profile{},
		MinExpiration: 20 * time.Minute, MaxExpiration: 240 * time.Hour, MaxFactAge: time.Minute,
		ApprovalReasons: []string{"Ticketed"}, RequireCredential: true, ServingRenewal: true,
		ClusterDomain: "example.local", ReservedNames: []string{"api.example.com"},
		ReservedAddresses: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::/32")},
		Bootstrap: policy.Bootstrap{UnboundTokens: true, Window: 2 * time.Hour, Bindings: []policy.Binding{
			{Group: "system:bootstrappers:kubeadm:default-node-token", NodeNames: []string{"worker-*"}, MachineGroups: []string{"workers"}},
		}},
	}
	for _, name := range c.SignerNames() {
		want.Signers[name], _ = pki.ProfileFor(name)
	}
	app := "beta.eks.amazonaws.com/app-serving"
	if want.Signers[app], err = pki.CustomProfile(app, pki.KindServing); err != nil {
		t.Fatal(err)
	}
	equal := cmp.Options{cmp.AllowUnexported(pki.Profile{}), cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})}
	if diff := cmp.Diff(want, c.Policy(), equal); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.Signers[0].Life() != 24*time.Hour || c.Signers[1].Life() != 168*time.Hour || c.Grace() != 5*time.Second {
		t.Errorf("durations %s, %s, %s", c.Signers[0].Life(), c.Signers[1].Life(), c.Grace())
	}
	if len(want.Signers) != 5 {
		t.Errorf("%d signers", len(want.Signers))
	}
}

func TestDefaults(t *testing.T) {
	c, err := policyconfig.Read([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	p := c.Policy()
	if c.Inventory.Combine != "any" || c.Pruning.Keep != 2 || c.Register.Namespace != "muster-system" || !c.Elects() ||
		p.ClusterDomain != "cluster.local" || p.Bootstrap.UnboundTokens || p.AllowEd25519 || p.MaxExpiration != 365*24*time.Hour {
		t.Errorf("defaults %+v", c)
	}
	if c.LeaderElection.Namespace != "muster-system" || c.LeaderElection.Name != "muster-certificate-controller" {
		t.Errorf("leader election %+v", c.LeaderElection)
	}
	one, err := policyconfig.Read([]byte(strings.Replace(small, "mode: approve-only", "keys: [{name: k, file: {certificate: /c, key: /k}}]", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if one.Mode != policyconfig.ModeApproveAndSign || one.Signers[0].Key != "k" {
		t.Errorf("mode %s with key %q", one.Mode, one.Signers[0].Key)
	}
}

// An election is left out only on request: two replicas without a setting must not both decide.
func TestElects(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                   true,
		"leaderElection: {}\n":               true,
		"leaderElection: {name: other}\n":    true,
		"leaderElection: {enabled: null}\n":  true,
		"leaderElection: {enabled: true}\n":  true,
		"leaderElection: {enabled: false}\n": false,
	} {
		c, err := policyconfig.Read([]byte(small + text))
		if err != nil || c.Elects() != want {
			t.Errorf("%q: elects %t, %v", text, c.Elects(), err)
		}
	}
}

// The kernel chooses two ports for port 0.
func TestPortsThatAreChosen(t *testing.T) {
	text := small + "health: {bindAddress: \"127.0.0.1:0\"}\nmetrics: {bindAddress: \"127.0.0.1:0\"}\n"
	if _, err := policyconfig.Read([]byte(text)); err != nil {
		t.Error(err)
	}
}

func TestProblems(t *testing.T) {
	change := func(old, with string) func(*testing.T) string {
		return func(t *testing.T) string {
			t.Helper()
			text := full(t)
			if strings.Count(text, old) == 0 {
				t.Fatalf("%q is not in the file", old)
			}
			return strings.Replace(text, old, with, 1)
		}
	}
	for _, tc := range []struct {
		name string
		text func(*testing.T) string
		want []string
	}{
		{"empty", func(*testing.T) string { return "# nothing\n" }, []string{"the policy file is empty"}},
		{"two documents", func(t *testing.T) string { t.Helper(); return full(t) + "---\n" + full(t) }, []string{"holds 2 documents"}},
		{"too large", func(*testing.T) string { return strings.Repeat("#", policyconfig.MaxSize+1) }, []string{"at most 1048576 are read"}},
		{"a list", func(*testing.T) string { return "[]\n" }, []string{"must be an object with fields"}},
		{"unknown fields", change("perIdentity: true", "perIdentities: true"), []string{`unknown field "policy.accessReview.perIdentities"`}},
		{"a key twice", change("workers: 16", "workers: 16\nworkers: 17"), []string{`"workers" already set`}},
		{"a wrong type", change("workers: 16", "workers: many"), []string{"workers", "must be a whole number"}},
		{"another version", change("v1alpha1", "v2"), []string{"apiVersion: Unsupported value"}},
		{"another kind", change("kind: Cert", "kind: Bert"), []string{"kind: Unsupported value"}},
		{"an unknown mode", change("mode: approve-and-sign", "mode: yes-man"), []string{`mode: Unsupported value: "yes-man"`, "observe"}},
		{"several at once", change("mode: approve-and-sign\nworkers: 16", "mode: x\nworkers: -1"), []string{"mode:", "workers:"}},
		{"a short life", change("duration: 24h", "duration: 1m"), []string{`signers[0].duration: Invalid value: "1m": must be from 10m0s`}},
		{"no duration", change("duration: 24h", "duration: soon"), []string{"must be a duration"}},
		{"a signer twice", change("name: kubernetes.io/kubelet-serving", "name: kubernetes.io/legacy-unknown"), []string{"Duplicate"}},
		{"an unknown signer", change("name: kubernetes.io/kubelet-serving", "name: example.com/x"), []string{"signers[1]", "give it a profile"}},
		{"a profile of upstream's", change("duration: 24h", "profile: client"), []string{"leave profile out"}},
		{"an unknown profile", change("profile: serving", "profile: both"), []string{"use serving or client"}},
		{"upstream's domain", change("beta.eks.amazonaws.com/app-serving", "foo.kubernetes.io/app"), []string{"signers[4]"}},
		{"a key that is not there", change("key: hsm", "key: hsn"), []string{`signers[1].key: Not found: "hsn"`}},
		{"which key", change("\n  key: hsm", ""), []string{"signers[1].key: Required value", "say which"}},
		{"a relative path", change("/etc/muster/ca.crt", "ca.crt"), []string{"keys[0].file.certificate", "absolute"}},
		{"no key file", change(", key: /etc/muster/ca.key", ""), []string{"keys[0].file.key: Required value"}},
		{"a key that is nowhere", change("  file: {certificate: /etc/muster/ca.crt, key: /etc/muster/ca.key}\n", ""), []string{"keys[0]: Required value: say where the key is"}},
		{"which key of the token", change("    keyLabel: ca\n    keyID: 0a0b\n", ""), []string{"keys[1].pkcs11.keyLabel"}},
		{"no pin", change("    pinFile: /etc/muster/pin\n", ""), []string{"keys[1].pkcs11.pinFile: Required"}},
		{"an API server that shows nothing", change(", clientCA: /etc/muster/apiserver-ca.crt", ""), []string{"authorization.clientCA: Required value: the authority of the client certificate that the API server shows"}},
		{"an API server that verifies nothing", change("9444\", certificate: /etc/muster/tls.crt, key: /etc/muster/tls.key", "9444\""), []string{"authorization.certificate: Required"}},
		{"an API server that asks nowhere", change("bindAddress: \"127.0.0.1:9444\", ", ""), []string{"authorization.bindAddress: Required"}},
		{"an API server that asks for metrics", change("127.0.0.1:9444", "0.0.0.0:8443"), []string{"authorization.bindAddress: Invalid value", "another port"}},
		{"machines that may be forgotten", change("  - machines: {kubeconfig: /etc/muster/management.kubeconfig, clusterName: muster}\n", ""), []string{"authorization: Invalid value", "needs inventory.sources with machines"}},
		{"bundles nowhere", change("  publish: {namespace: kube-system}\n", ""), []string{"trust.publish: Required"}},
		{"bundles of nobody", func(*testing.T) string { return small + "trust: {publish: {namespace: a}}\n" }, []string{"trust: Required value: in mode approve-only no key is known"}},
		{"bundles in observe", change("mode: approve-and-sign", "mode: observe"), []string{"trust: Forbidden"}},
		{"a relative bundle", change("client: [/etc", "client: [etc"), []string{"trust.client[0]"}},
		{"an impossible range", change("minExpiration: 20m", "minExpiration: 300h"), []string{"must not be more than maxExpiration"}},
		{"no network", change("10.96.0.0/12", "10.96.0.0/99"), []string{"policy.reserved.addresses[0]"}},
		{"an empty name", change("API.example.com.", "."), []string{"policy.reserved.names[0]: Required"}},
		{"an unknown choice", change("unboundTokens: allow", "unboundTokens: maybe"), []string{"policy.bootstrap.unboundTokens"}},
		{"renewals by nobody", change("authorities: [/etc/muster/ca.crt], ", ""), []string{"policy.servingRenewal.authorities: Required value"}},
		{"renewals by a relative file", change("authorities: [/etc", "authorities: [etc"), []string{"policy.servingRenewal.authorities[0]: Invalid value", "absolute"}},
		{"renewals at no port", change("port: 10251", "port: 102510"), []string{"policy.servingRenewal.port: Invalid value: 102510"}},
		{"renewals without an inventory, and tokens", func(*testing.T) string {
			return strings.NewReplacer("inventory: {sources: [{static: {file: /etc/machines.yaml}}]}\n", "policy: {servingRenewal: {authorities: [/ca.crt]}}\n",
				"signers: [", "signers: [{name: kubernetes.io/kube-apiserver-client-kubelet}, ").Replace(small)
		}, []string{"inventory.sources: Required"}},
		{"a short window", change("window: 2h", "window: 2s"), []string{`policy.bootstrap.window: Invalid value: "2s": must be from 1m0s`}},
		{"a window of nothing", change("window: 2h", "window: often"), []string{"policy.bootstrap.window: Invalid value", "must be a duration"}},
		{"a window where nobody knows", func(*testing.T) string {
			return strings.Replace(small, "{static: {file: /etc/machines.yaml}}", "{dns: {}}", 1) + "policy: {bootstrap: {window: 2h}}\n"
		}, []string{"line 6: policy.bootstrap.window: Forbidden: no source of the inventory knows when machines were made"}},
		{"a binding of nothing", change(`, nodeNames: ["worker-*"], machineGroups: [workers]`, ""), []string{"bindings[0]: Required"}},
		{"a binding of nobody", change(`group: "system:bootstrappers:kubeadm:default-node-token", `, ""), []string{"bindings[0]: Required value: name the group"}},
		{"a binding of two", change(`{group: "system`, `{user: vip, group: "system`), []string{"bindings[0]: Required value: name the group"}},
		{"a binding of Kubernetes' own", change(`group: "system:bootstrappers:kubeadm:default-node-token"`, `user: "system:admin"`), []string{"bindings[0].user"}},
		{"a bad pattern", change("worker-*", "worker-["), []string{"bindings[0].nodeNames[0]"}},
		{"an empty reason", change("[Ticketed]", `[" "]`), []string{"policy.approvalReasons[0]: Required"}},
		{"the reason of programs", change("[Ticketed]", "[Ticketed, AutoApproved]"), []string{`policy.approvalReasons[1]: Invalid value: "AutoApproved"`}},
		{"combine", change("combine: all", "combine: most"), []string{"inventory.combine"}},
		{"two sources in one", change("- nodeStatus: {}", "- nodeStatus: {}\n    dns: {}"), []string{"inventory.sources[6]: Required value: name one of"}},
		{"a static source of nothing", change("static: {file: /etc/muster/machines.yaml}", "static: {}"), []string{"inventory.sources[1].static"}},
		{"a resolver without port", change(`"10.0.0.2:53"`, `"10.0.0.2"`), []string{"inventory.sources[3].dns.resolvers[0]"}},
		{"an endpoint", change("region: eu-west-1", "endpoint: ec2"), []string{"inventory.sources[5].ec2.endpoint"}},
		{"half a certificate", change(", key: /etc/muster/tls.key", ""), []string{"metrics: Required value: give both"}},
		{"client certificates without a serving one", change(", certificate: /etc/muster/tls.crt, key: /etc/muster/tls.key", ""), []string{"metrics.certificate: Required value: clients show a certificate only to"}},
		{"metrics where health is", change("0.0.0.0:8443", "0.0.0.0:8081"), []string{"metrics.bindAddress: Invalid value"}},
		{"an address without port", change("0.0.0.0:8081", "0.0.0.0"), []string{"health.bindAddress"}},
		{"keep nothing", change("keep: 3", "keep: -2"), []string{"pruning.keep"}},
		{"no sources", func(*testing.T) string {
			return strings.Replace(small, "inventory: {sources: [{static: {file: /etc/machines.yaml}}]}\n", "", 1)
		}, []string{"inventory.sources: Required"}},
		{"no signers", func(*testing.T) string {
			return strings.Replace(small, "signers: [{name: kubernetes.io/kubelet-serving}]\n", "", 1)
		}, []string{"signers: Required"}},
		{"no key in a mode that signs", func(*testing.T) string { return strings.Replace(small, "approve-only", "sign-only", 1) }, []string{"signers[0].key: Required"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := policyconfig.Read([]byte(tc.text(t)))
			if _, ok := errors.AsType[policyconfig.Problems](err); !ok {
				t.Fatalf("error %v", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in:\n%v", want, err)
				}
			}
			if len(c.Signers) > 0 {
				t.Error("a file with problems was read all the same")
			}
		})
	}
}

// An accepted file can be converted without a surprise: nothing is dropped silently.
func FuzzRead(f *testing.F) {
	f.Add([]byte(full(f)))
	f.Add([]byte(small))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := policyconfig.Read(data)
		if err != nil {
			return
		}
		p := c.Policy()
		if len(p.Signers) != len(c.Signers) || len(p.ReservedAddresses) != len(c.Rules.Reserved.Addresses) || len(p.ReservedNames) != len(c.Rules.Reserved.Names) {
			t.Errorf("the policy has %d signers, %d addresses, %d names", len(p.Signers), len(p.ReservedAddresses), len(p.ReservedNames))
		}
		for _, s := range c.Signers {
			if s.Life() < 10*time.Minute {
				t.Errorf("certificates of %s live %s", s.Name, s.Life())
			}
		}
	})
}

// The file in the documentation is read as it stands.
func TestDocumentation(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "policy-file.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(raw), "```yaml\n")[1:]
	if len(blocks) != 2 {
		t.Fatalf("%d examples", len(blocks))
	}
	for _, b := range blocks {
		example, _, _ := strings.Cut(b, "```")
		if _, err := policyconfig.Read([]byte(example)); err != nil {
			t.Errorf("%v in:\n%s", err, example)
		}
	}
}
