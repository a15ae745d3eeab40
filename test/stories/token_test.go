// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/discovery"
	"muster.dev/muster/internal/platform/release"
)

// TestTokens lets hosts in by tokens: a host finds the cluster by an address, a token and a hash, asks for its
// certificate, and `token list` tells. Tokens that are bound to another host, to none, that have expired or were
// deleted do not; kubeadm sees them as muster does, and muster sees kubeadm's.
//
//story:about ./cmd/muster/token certificates/token node/hostjoin
func TestTokens(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--provider", "simulated", "--nodes", "1")
	i.ready()
	t.Run("page", func(t *testing.T) { tokensPage(t, i.in(t)) })
	t.Run("a host that was registered", func(t *testing.T) { registeredHost(t, i.in(t)) })
	t.Run("what else binds tokens", func(t *testing.T) { boundTokens(t, i.in(t)) })
	t.Run("a token of nobody", func(t *testing.T) { unboundToken(t, i.in(t)) })
	t.Run("refusals", func(t *testing.T) { refusedDiscovery(t, i.in(t)) })
	t.Run("kubeadm", func(t *testing.T) { kubeadmTokens(t, i.in(t)) })
	t.Run("an API server that comes back", func(t *testing.T) { discoveryWaits(t, i.in(t)) })
}

// invitation is what a join command says, and where the API server is to be reached from this host, which is not in the
// VPC.
type invitation struct{ endpoint, token, hash, here string }

func (i *installation) invite(args ...string) invitation {
	i.t.Helper()
	out, _ := i.muster(append([]string{"token", "create", "--print-join-command"}, args...)...)
	words := strings.Fields(out)
	if len(words) < 7 || words[0] != "muster" || words[1] != "join" || words[3] != "--token" || words[5] != "--ca-cert-hash" {
		i.t.Fatalf("no join command: %s", out)
	}
	return invitation{words[2], words[4], words[6], i.mustKubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")}
}

func (v invitation) discover(t *testing.T, change ...func(*discovery.Config)) (discovery.Result, error) {
	t.Helper()
	tok, err := token.Parse(v.token)
	if err != nil {
		t.Fatal(err)
	}
	c := discovery.Config{Endpoint: v.here, Token: tok, CACertHashes: []string{v.hash}, Timeout: 30 * time.Second, Settle: 3 * time.Second}
	for _, f := range change {
		f(&c)
	}
	return discovery.Discover(t.Context(), c)
}

// asks finds the cluster and asks for the first certificate of a node, as its kubelet does. It returns the key.
func (v invitation) asks(t *testing.T, name, node string) []byte {
	t.Helper()
	found, err := v.discover(t)
	if err != nil {
		t.Fatal(err)
	}
	if found.Endpoint != "https://"+v.endpoint {
		t.Errorf("the cluster says it is at %s, and the join command %s", found.Endpoint, v.endpoint)
	}
	request, key := requestOf(t, x509.CertificateRequest{Subject: nodeSubject(node)})
	ask(t, &rest.Config{Host: v.here, BearerToken: v.token, TLSClientConfig: rest.TLSClientConfig{CAData: found.CA}}, name, certificatesv1.CertificateSigningRequestSpec{
		Request: request, SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
	})
	return key
}

func nodeSubject(node string) pkix.Name {
	return pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}
}

func ask(t *testing.T, as *rest.Config, name string, spec certificatesv1.CertificateSigningRequestSpec) {
	t.Helper()
	client, err := kubernetes.NewForConfig(as)
	if err != nil {
		t.Fatal(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if _, err := client.CertificatesV1().CertificateSigningRequests().Create(t.Context(), csr, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func registeredHost(t *testing.T, i *installation) {
	v := i.invite("--node-name", "worker-2", "--address", "172.31.0.202")
	key := v.asks(t, "worker-2", "worker-2")
	node := &rest.Config{Host: v.here, TLSClientConfig: rest.TLSClientConfig{CertData: i.certificate("worker-2"), KeyData: key}}
	found, err := v.discover(t)
	if err != nil {
		t.Fatal(err)
	}
	node.CAData = found.CA
	// As that node it gets a serving certificate for the address that was registered, and for no other.
	serving := func(name string, address net.IP) {
		request, _ := requestOf(t, x509.CertificateRequest{Subject: nodeSubject("worker-2"), DNSNames: []string{"worker-2"}, IPAddresses: []net.IP{address}})
		ask(t, node, name, certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: certificatesv1.KubeletServingSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		})
	}
	serving("serving-right", net.IPv4(172, 31, 0, 202))
	i.certificate("serving-right")
	serving("serving-wrong", net.IPv4(172, 31, 0, 203))
	i.waits("serving-wrong", "address-assigned")
	if out := i.mustKubectl("auth", "can-i", "watch", "configmaps/machines", "-n", "muster-system", "--as", "eks:certificate-controller"); out != "yes" {
		t.Errorf("may the certificate controller watch the list of hosts? %s", out)
	}
	for _, verb := range []string{"update", "patch", "get", "delete"} {
		out, _ := i.kubectl("auth", "can-i", verb, "configmaps/machines", "-n", "muster-system", "--as", "system:node:worker-2", "--as-group", "system:nodes", "--as-group", "system:authenticated")
		if out != "" { // it says no, and fails
			t.Errorf("a node may %s the list of hosts: %s", verb, out)
		}
	}
	i.eventually("the list tells who used the token", func() error {
		out, _ := i.muster("token", "list")
		if !regexp.MustCompile(`(?m)^` + v.token[:6] + ` .* name worker-2 +worker-2 +\d+s ago`).MatchString(out) {
			return fmt.Errorf("it says\n%s", out)
		}
		if strings.Contains(out, v.token[7:]) {
			t.Errorf("the list shows the secret half:\n%s", out)
		}
		return nil
	})
	// The request goes after an hour; the register is for ever.
	i.eventually("the register tells, too", func() error {
		out := i.mustKubectl("-n", "muster-system", "get", "configmaps", "-l", "certificates.muster.dev/register=true", "-o", "yaml")
		if !strings.Contains(out, "requester=system:bootstrap:"+v.token[:6]) {
			return errors.New("it does not")
		}
		return nil
	})
	// The same token for another name, registered or not, is refused for good.
	v.asks(t, "worker-3", "worker-3")
	i.denied("worker-3", "bootstrap-name")
	// And a name that nobody registered waits, though the token is bound to it.
	i.invite("--node-name", "worker-4").asks(t, "worker-4", "worker-4")
	i.waits("worker-4", "machine")
	i.muster("delete", "host", "worker-2")
}

// boundTokens are good for the host that they are bound to, by its ID, its group, or a pattern of names, and not for
// its neighbour.
func boundTokens(t *testing.T, i *installation) {
	for _, host := range []string{"worker-6", "rack-7"} {
		i.muster("token", "create", "--node-name", host, "--address", "172.31.0.20"+host[len(host)-1:], "--group", "of-"+host)
	}
	for rule, args := range map[string][]string{
		"bootstrap-machine": {"--machine", "host-worker-6"},
		"bootstrap-group":   {"--group", "of-worker-6"},
		"bootstrap-name":    {"--pattern", "worker-?"},
	} {
		v := i.invite(args...)
		v.asks(t, rule+"-right", "worker-6")
		i.certificate(rule + "-right")
		v.asks(t, rule+"-wrong", "rack-7")
		i.denied(rule+"-wrong", rule)
	}
	i.muster("delete", "host", "worker-6", "rack-7")
}

// unboundToken waits for a person.
func unboundToken(t *testing.T, i *installation) {
	i.invite("--node-name", "worker-5", "--address", "172.31.0.205")
	i.invite().asks(t, "worker-5", "worker-5")
	i.waits("worker-5", "requester")
	i.muster("csr", "approve", "worker-5", "--reason", "it is in my rack")
	i.certificate("worker-5")
}

func (i *installation) denied(name, rule string) {
	i.t.Helper()
	i.eventually(name+" is denied", func() error {
		if out := i.mustKubectl("get", "csr", name, "-o", "jsonpath={.status.conditions[*].type} {.status.conditions[*].reason} {.status.conditions[*].message}"); !strings.HasPrefix(out, "Denied") || !strings.Contains(out, rule) {
			return fmt.Errorf("conditions are %q", out)
		}
		return nil
	})
}

func (i *installation) waits(name, rule string) {
	i.t.Helper()
	i.eventually(name+" waits", func() error {
		if out, _ := i.muster("csr", "explain", name); !strings.Contains(out, rule) {
			return fmt.Errorf("explain says:\n%s", out)
		}
		return nil
	})
	if out := i.mustKubectl("get", "csr", name, "-o", "jsonpath={.status}"); out != "{}" {
		i.t.Errorf("the status of %s is %s", name, out)
	}
}

func refusedDiscovery(t *testing.T, i *installation) {
	v := i.invite()
	wrong := func(c *discovery.Config) { c.CACertHashes = []string{"sha256:" + strings.Repeat("0", 64)} }
	other := v
	other.token = v.token[:7] + "0000000000000000"
	// Nothing is asked about it once it is there: it may have expired by then.
	short := v
	made, _ := i.muster("token", "create", "--ttl", "1s")
	short.token = strings.TrimSpace(made)
	for name, tc := range map[string]struct {
		v      invitation
		change func(*discovery.Config)
		want   discovery.Reason
	}{
		"wrong hash":          {v, wrong, discovery.WrongCA},
		"no hash":             {v, func(c *discovery.Config) { c.CACertHashes = nil }, discovery.NoPin},
		"another secret half": {other, func(*discovery.Config) {}, discovery.BadSignature},
		"skewed clock":        {v, func(c *discovery.Config) { c.Now = func() time.Time { return time.Now().AddDate(-1, 0, 0) } }, discovery.ClockSkew},
	} {
		var refused *discovery.Error
		if _, err := tc.v.discover(t, tc.change); !errors.As(err, &refused) || refused.Reason != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := v.discover(t, func(c *discovery.Config) { c.CACertHashes, c.UnsafeSkipCAVerification = nil, true }); err != nil {
		t.Error(err)
	}
	i.muster("token", "delete", v.token[:6])
	for name, gone := range map[string]invitation{"deleted": v, "expired": short} {
		i.eventually("a token that was "+name+" is refused", func() error {
			_, err := gone.discover(t, func(c *discovery.Config) { c.Settle = time.Millisecond })
			var refused *discovery.Error
			if !errors.As(err, &refused) || refused.Reason != discovery.NoSignature {
				return fmt.Errorf("got %w", err)
			}
			return nil
		})
	}
	i.eventually("the expired token is cleaned up", func() error {
		if out, _ := i.muster("token", "list"); strings.Contains(out, short.token[:6]) {
			return fmt.Errorf("the list says\n%s", out)
		}
		return nil
	})
}

func (i *installation) kubeadm(args ...string) string {
	i.t.Helper()
	cmd := exec.CommandContext(i.t.Context(), release.Default().Program(i.bin, "kubeadm"), append(args, "--kubeconfig", i.kubeconfig)...)
	cmd.Env = i.environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		i.t.Fatalf("kubeadm %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func kubeadmTokens(t *testing.T, i *installation) {
	ours := i.invite("--pattern", "rack-7-*", "--description", "made by muster")
	if out := i.kubeadm("token", "list"); !strings.Contains(out, ours.token) || !strings.Contains(out, "made by muster") || !strings.Contains(out, "authentication,signing") {
		t.Errorf("kubeadm sees\n%s", out)
	}
	theirs := strings.TrimSpace(i.kubeadm("token", "create", "--description", "made by kubeadm", "--ttl", "2h"))
	if out, _ := i.muster("token", "list", "--show-secrets"); !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(theirs) + ` +1(h|19m|59m).* made by kubeadm$`).MatchString(out) {
		t.Errorf("muster sees\n%s", out)
	}
	// Both word the same hash.
	command, _ := i.muster("token", "print-join-command", theirs[:6], "--for", "kubeadm")
	if words := strings.Fields(command); len(words) != 7 || !strings.Contains(i.kubeadm("token", "create", "--print-join-command"), words[6]) {
		t.Errorf("muster prints %s", command)
	}
	i.kubeadm("token", "delete", ours.token[:6])
	i.muster("token", "delete", theirs)
	if out := i.kubeadm("token", "list"); strings.Contains(out, theirs) || strings.Contains(out, ours.token) {
		t.Errorf("kubeadm still sees\n%s", out)
	}
	// Configurations that kubeadm reads of the cluster pass kubeadm's validation.
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	text := i.mustKubectl("-n", "kube-system", "get", "configmap", "kubeadm-config", "-o", "jsonpath={.data.ClusterConfiguration}") + "\n---\n" +
		i.mustKubectl("-n", "kube-system", "get", "configmap", "kubelet-config", "-o", "jsonpath={.data.kubelet}")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), release.Default().Program(i.bin, "kubeadm"), "config", "validate", "--config", path)
	cmd.Env = i.environment()
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "ok" {
		t.Errorf("kubeadm config validate: %v: %s", err, out)
	}
}

func discoveryWaits(t *testing.T, i *installation) {
	v := i.invite()
	i.kill("kube-apiserver")
	said := 0
	if _, err := v.discover(t, func(c *discovery.Config) {
		c.Timeout, c.Settle, c.Progress = 5*time.Minute, 5*time.Minute, func(string) { said++ } // a busy host takes long to allow anything
	}); err != nil {
		t.Error(err)
	}
	if said == 0 {
		t.Error("it did not wait")
	}
	i.ready()
}

// tokensPage runs what docs/tokens.md shows.
func tokensPage(t *testing.T, i *installation) {
	i.in(t).follow(page{name: "tokens.md", least: 40})
}
