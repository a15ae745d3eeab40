// SPDX-License-Identifier: Apache-2.0

package component

import (
	"bytes"
	"encoding/json"
	"flag"
	"net"
	"net/netip"
	neturl "net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/platform/release"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	key        = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0MDE="
	accountKey = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0MDI="
)

// at is the place of a component on the host that the service runs on.
func at(port uint16) Place {
	return At(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port))
}

// fixed is a configuration in which no two values are the same, so that no mix-up passes.
func fixed(vpc bool) Config {
	c := Config{
		Account: Account{
			State: "/var/lib/muster", BinDir: "/opt/muster/bin", EncryptionKey: accountKey, VPC: vpc, Logs: vpc, VPCs: []VPC{{ID: clusternetworktest.VPCID, CIDR: netip.MustParsePrefix("172.31.0.0/16"), Egress: true}, {ID: "vpc-0fedcba9876543210", CIDR: netip.MustParsePrefix("10.0.0.0/16"), Balancers: true}},
			Places:  AccountPlaces{Management: at(20004), ManagementServer0: at(20022), ManagementServer1: at(20023), ManagementEtcd: at(20008), ManagementEtcdPeer: at(20009), Identity: at(20010), Registry: at(20011)},
			Issuers: Issuers{Address: netip.MustParseAddr("127.93.14.201"), Port: 443, Host: "oidc.example.com"},
		},
		Dir: "/var/lib/muster/clusters/blue", Simulates: !vpc, Karpenter: vpc, EncryptionKey: key, Network: clusternetworktest.Network(),
		Issuer:  Issuer{URL: "https://oidc.example.com/id/0123456789ABCDEF0123456789ABCDEF", Keys: "https://oidc.example.com/id/0123456789ABCDEF0123456789ABCDEF/keys", ID: "0123456789ABCDEF0123456789ABCDEF"},
		Release: release.Release{Version: "v1.36.3", Folder: "../releases/1.36"},
		Places: Places{
			Published: at(20003), APIServer0: at(20019), APIServer1: at(20020), APIServer2: at(20021), Etcd: at(20001), EtcdPeer: at(20002), ControllerManager: at(20005), Scheduler: at(20006),
			CertificateController: at(20007), CertificateControllerMetrics: at(20013), CertificateControllerAuthorization: at(20014), Authenticator: at(20011),
			PodWebhook: at(20015), PodWebhookMetrics: at(20016), PodWebhookHealth: at(20017), TokenSigner: at(20018),
		},
	}
	c.Cluster.Name, c.Cluster.Spec.Name = "blue", "Blue"
	c.Region = region.Region{Name: "lab-1"}
	c.Cluster.Spec.Certificates.ClientDuration = &metav1.Duration{Duration: 2 * time.Hour}
	c.Cluster.Spec.Certificates.ServingDuration = &metav1.Duration{Duration: 3 * time.Hour}
	c.Cluster.Default()
	return c
}

// specs are those of the account and of its one cluster.
func specs(t *testing.T, c Config) []Spec {
	t.Helper()
	own, err := Specs(c)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(ManagementSpecs(c.Account), AccountSpecs(c.Account), own)
}

// credentials are all that the account and its one cluster have.
func credentials(t *testing.T, c Config) []authority.Credential {
	t.Helper()
	credentials, err := AccountCredentials(c.Account)
	if err != nil {
		t.Fatal(err)
	}
	own, err := Credentials(c)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(credentials, own, Membership(c))
}

func golden(t *testing.T, name string, value any) {
	t.Helper()
	got, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); rewrite it with -update if that is meant:\n%s", path, diff)
	}
}

func TestGolden(t *testing.T) {
	for name, vpc := range map[string]bool{"vpc": true, "simulated": false} {
		t.Run(name, func(t *testing.T) {
			redacted := []Spec{}
			for _, spec := range specs(t, fixed(vpc)) {
				redacted = append(redacted, spec.Redacted())
			}
			golden(t, "specs-"+name+".yaml", redacted)
		})
	}
	golden(t, "settings.yaml", changedBySettings(t))
	golden(t, "credentials.yaml", credentials(t, fixed(true)))
}

func TestHash(t *testing.T) {
	spec := func() Spec {
		return Spec{
			Name: "name", Path: "/path", Args: []string{"a", "b"}, Env: []string{"A=1"}, Directories: []string{"/dir"}, After: []string{"x"},
			Files:   []File{{Path: "/file", Mode: 0o600, Content: "content", Secret: true}},
			Address: "127.0.0.1:1", Credentials: []string{"/credential"},
			Probe: &Probe{URL: "https://url", Socket: "/socket", CAFile: "/ca", CredentialFile: "/credential"},
		}
	}
	seen := map[string]string{spec().Hash(): "nothing"}
	for what, change := range map[string]func(*Spec){
		"name":             func(s *Spec) { s.Name = "x" },
		"cluster":          func(s *Spec) { s.Cluster = "x" },
		"address":          func(s *Spec) { s.Address = "127.0.0.1:2" },
		"credentials":      func(s *Spec) { s.Credentials[0] = "/x" },
		"path":             func(s *Spec) { s.Path = "/x" },
		"args":             func(s *Spec) { s.Args[1] = "x" },
		"split args":       func(s *Spec) { s.Args = []string{"a b"} },
		"order of args":    func(s *Spec) { slices.Reverse(s.Args) },
		"env":              func(s *Spec) { s.Env[0] = "A=2" },
		"directories":      func(s *Spec) { s.Directories[0] = "/x" },
		"file path":        func(s *Spec) { s.Files[0].Path = "/x" },
		"file mode":        func(s *Spec) { s.Files[0].Mode = 0o640 },
		"file content":     func(s *Spec) { s.Files[0].Content = "x" },
		"no files":         func(s *Spec) { s.Files = nil },
		"probe url":        func(s *Spec) { s.Probe.URL = "https://x" },
		"probe socket":     func(s *Spec) { s.Probe.Socket = "/x" },
		"probe ca":         func(s *Spec) { s.Probe.CAFile = "/x" },
		"probe credential": func(s *Spec) { s.Probe.CredentialFile = "/x" },
		"no probe":         func(s *Spec) { s.Probe = nil },
	} {
		changed := spec()
		change(&changed)
		hash := changed.Hash()
		if other, ok := seen[hash]; ok {
			t.Errorf("changing %s gives the same hash as changing %s", what, other)
		}
		seen[hash] = what
	}
	reordered := spec()
	reordered.After, reordered.Memory, reordered.NextArgs = nil, 1<<30, []string{"--v=1"}
	if reordered.Hash() != spec().Hash() {
		t.Error("the hash depends on the order of start-up, or on a limit that changes while it runs")
	}
	if len(spec().After) != 1 {
		t.Error("Hash changed the spec")
	}
}

// A component is restarted when the service starts again if its spec differs, so it must not.
func TestSpecsAreStable(t *testing.T) {
	want := specs(t, fixed(true))
	for range 20 {
		if diff := cmp.Diff(want, specs(t, fixed(true))); diff != "" {
			t.Fatalf("the same configuration gives another spec:\n%s", diff)
		}
	}
}

func TestRedacted(t *testing.T) {
	secrets := 0
	for _, spec := range specs(t, fixed(true)) {
		raw, err := json.Marshal(spec.Redacted())
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte(key)) || bytes.Contains(raw, []byte(accountKey)) {
			t.Errorf("%s shows the encryption key", spec.Name)
		}
		for _, file := range spec.Files {
			if strings.Contains(file.Content, key) || strings.Contains(file.Content, accountKey) {
				secrets++
				if !file.Secret {
					t.Errorf("%s is not marked secret", file.Path)
				}
			}
		}
	}
	if secrets != 2 {
		t.Errorf("%d files hold the key; want those of the two API servers (and Redacted must not change the spec)", secrets)
	}
}

func TestNothingSecretInSight(t *testing.T) {
	for _, spec := range specs(t, fixed(true)) {
		for _, text := range append(slices.Clone(spec.Args), spec.Env...) {
			if strings.Contains(text, key) || strings.Contains(text, "PRIVATE KEY") {
				t.Errorf("%s has a secret on its command line or in its environment: %s", spec.Name, text)
			}
		}
		for _, file := range spec.Files {
			if file.Mode != 0o600 {
				t.Errorf("%s has mode %v", file.Path, file.Mode)
			}
			if strings.Contains(file.Content, "key-data") || strings.Contains(file.Content, "token:") || strings.Contains(file.Content, "password") {
				t.Errorf("%s holds a credential", file.Path)
			}
			home := "/var/lib/muster/"
			if spec.Cluster != "" {
				home += "clusters/" + spec.Cluster + "/"
			}
			if !strings.HasPrefix(file.Path, home+"components/"+spec.Name+"/") {
				t.Errorf("%s is outside the component's folder", file.Path)
			}
		}
	}
}

// flagsOf are a spec's flags, in order; a word before them is a command of muster's.
func flagsOf(t *testing.T, spec Spec) (names []string, values map[string]string) {
	t.Helper()
	values = map[string]string{}
	args := spec.Args
	if filepath.Base(spec.Path) == "muster" || spec.Name == Karpenter {
		args = args[1:]
	}
	for _, arg := range args {
		name, value, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !ok || !strings.HasPrefix(arg, "--") {
			t.Errorf("%s: %q is not --name=value", spec.Name, arg)
		}
		names, values[name] = append(names, name), value
	}
	return names, values
}

func TestFlagsAreSorted(t *testing.T) {
	for _, spec := range specs(t, fixed(true)) {
		names, values := flagsOf(t, spec)
		if !slices.IsSorted(names) {
			t.Errorf("%s: %v", spec.Name, names)
		}
		if len(values) != len(names) {
			t.Errorf("%s has a flag twice: %v", spec.Name, names)
		}
	}
}

func TestListensOnLoopbackOnly(t *testing.T) {
	ports := map[string]string{}
	for _, spec := range specs(t, fixed(true)) {
		_, values := flagsOf(t, spec)
		for name, value := range values {
			var addresses []string
			switch {
			case name == "secure-port":
				if values["bind-address"] != "127.0.0.1" {
					t.Errorf("%s binds to %q", spec.Name, values["bind-address"])
				}
				addresses = []string{net.JoinHostPort(values["bind-address"], value)}
			case strings.HasPrefix(name, "listen-"):
				u, err := neturl.Parse(value)
				if err != nil || u.Scheme != "https" {
					t.Errorf("%s: --%s=%s", spec.Name, name, value)
				}
				addresses = []string{u.Host}
			case name == "config" && spec.Name == CertificateController:
				file := policyFile(t, spec)
				addresses = []string{file.Health.BindAddress, file.Metrics.BindAddress}
				if file.Metrics.ClientCA == "" || file.Metrics.Certificate == "" {
					t.Errorf("%s: readers of metrics show no client certificate: %+v", spec.Name, file.Metrics)
				}
			default:
				continue
			}
			for _, address := range addresses {
				listen, err := netip.ParseAddrPort(address)
				if err != nil || !listen.Addr().IsLoopback() {
					t.Errorf("%s: --%s=%s is not on a loopback address", spec.Name, name, value)
				}
				if other := ports[address]; other != "" {
					t.Errorf("%s and %s both listen on %s", other, spec.Name, address)
				}
				ports[address] = spec.Name
			}
		}
	}
	if len(ports) != 10 {
		t.Errorf("found %d listeners, want one for every port of the configuration: %v", len(ports), ports)
	}
}

// Everything a spec names must be there: what it waits for, and the certificates that are issued.
func TestReferences(t *testing.T) {
	for _, vpc := range []bool{true, false} {
		c := fixed(vpc)
		credentials := credentials(t, c)
		issued := map[string]authority.Credential{}
		for _, credential := range credentials {
			issued[credential.Name] = credential
		}
		known := []string{}
		for _, spec := range specs(t, c) {
			for _, name := range spec.After {
				if !slices.Contains(known, name) {
					t.Errorf("%s comes before %s, which it waits for", spec.Name, name)
				}
			}
			known = append(known, spec.Name)
			raw, err := json.Marshal(spec)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range strings.SplitAfter(string(raw), "/issued/")[1:] {
				if name, _, _ := strings.Cut(part, ".pem"); issued[name].Name == "" {
					t.Errorf("%s uses the credential %q, which nobody issues", spec.Name, name)
				}
			}
			for _, file := range spec.Files {
				if strings.HasSuffix(file.Path, "kubeconfig") {
					if _, err := clientcmd.Load([]byte(file.Content)); err != nil {
						t.Errorf("%s: %v", file.Path, err)
					}
				}
			}
		}
		// Who lets people in before RBAC is asked has all power: only the service may.
		for _, credential := range credentials {
			if slices.Contains(credential.Organizations, "system:masters") && credential.CommonName != UserService {
				t.Errorf("%s is in system:masters", credential.Name)
			}
		}
	}
}

func mustSpecs(t *testing.T, c Config) []Spec {
	t.Helper()
	specs, err := Specs(c)
	if err != nil {
		t.Fatal(err)
	}
	return specs
}
