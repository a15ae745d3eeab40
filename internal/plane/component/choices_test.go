// SPDX-License-Identifier: Apache-2.0

package component

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/policyconfig"
)

func TestEKSChoices(t *testing.T) {
	for _, spec := range specs(t, fixed(true)) {
		_, values := flagsOf(t, spec)
		switch spec.Name {
		case APIServer:
			for name, want := range map[string]string{"authorization-mode": "", "enable-admission-plugins": "NodeRestriction", "enable-bootstrap-token-auth": "true"} {
				if values[name] != want {
					t.Errorf("--%s=%s, want %s", name, values[name], want)
				}
			}
		case ControllerManager:
			if got, want := values["controllers"], "*,-csrsigning,-csrapproving,bootstrapsigner,tokencleaner"; got != want {
				t.Errorf("--controllers=%s, want %s", got, want)
			}
			if _, ok := values["cluster-signing-key-file"]; ok {
				t.Error("the controller manager has the key of the authority")
			}
		}
	}
}

// Where machines have ranges of their subnets the controller manager gives none.
func TestWhoGivesPodRanges(t *testing.T) {
	for inSubnets, want := range map[bool]map[string]string{
		false: {"allocate-node-cidrs": "true", "cluster-cidr": "10.244.0.0/16", "node-cidr-mask-size": "24"},
		true:  {"allocate-node-cidrs": "false", "cluster-cidr": "", "node-cidr-mask-size": ""},
	} {
		c := fixed(true)
		c.Network.PodsInSubnets = inSubnets
		for _, spec := range specs(t, c) {
			if spec.Name != ControllerManager {
				continue
			}
			_, values := flagsOf(t, spec)
			for name, value := range want {
				if values[name] != value {
					t.Errorf("in subnets %v: --%s=%q, want %q", inSubnets, name, values[name], value)
				}
			}
		}
	}
}

func TestHost(t *testing.T) {
	for _, test := range []struct {
		cidr string
		n    int
		want string
	}{
		{"192.168.64.0/18", 0, "192.168.64.0"},
		{"192.168.64.0/18", 2, "192.168.64.2"},
		{"192.168.64.77/18", 2, "192.168.64.2"}, // host bits do not count
		{"10.100.0.250/16", 10, "10.100.0.10"},
		{"10.0.0.252/30", 3, "10.0.0.255"},
		{"10.0.0.252/30", 4, ""},
		{"10.0.255.0/23", 256, "10.0.255.0"}, // carries
		{"10.0.0.4/31", 1, "10.0.0.5"},
		{"10.0.0.4/31", 2, ""},
		{"10.0.0.4/32", 0, "10.0.0.4"},
		{"10.0.0.4/32", 1, ""},
		{"255.255.255.255/32", 1, ""}, // there is no next address
		{"255.255.255.240/28", 15, "255.255.255.255"},
		{"255.255.255.240/28", 16, ""},
		{"fd00::/112", 10, "fd00::a"},
		{"10.0.0.0", 1, ""},
		{"10.0.0.0/33", 1, ""},
		{"", 1, ""},
	} {
		got, err := host(test.cidr, test.n)
		switch {
		case test.want == "" && err == nil:
			t.Errorf("host(%s, %d) = %s, want an error", test.cidr, test.n, got)
		case test.want != "" && (err != nil || got.String() != test.want):
			t.Errorf("host(%s, %d) = %s, %v; want %s", test.cidr, test.n, got, err, test.want)
		}
	}
}

func TestNetworksThatDoNot(t *testing.T) {
	for what, change := range map[string]func(*Config){
		"no address":         func(c *Config) { c.Network.Addresses = nil },
		"service unreadable": func(c *Config) { c.Cluster.Spec.Network.ServiceCIDR = "10.0.0.0/x" },
	} {
		c := fixed(true)
		change(&c)
		_, specsErr := Specs(c)
		_, credentialsErr := Credentials(c)
		if specsErr == nil && credentialsErr == nil {
			t.Errorf("%s: no error", what)
		}
	}
	c := fixed(true)
	c.Cluster.Spec.Network.ServiceCIDR = "10.0.0.0/29"
	if addr, err := c.DNSAddress(); err == nil {
		t.Errorf("a service network of 8 addresses has %s for DNS", addr)
	}
}

func TestServerNames(t *testing.T) {
	names, addresses, err := fixed(true).ServerNames()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"} {
		if !slices.Contains(names, want) {
			t.Errorf("names %v lack %s", names, want)
		}
	}
	if got, want := fmt.Sprint(addresses), "[127.0.0.1 172.31.0.4 172.31.16.4 10.100.0.1]"; got != want {
		t.Errorf("addresses are %s, want %s", got, want)
	}
}

func TestCertificateDurations(t *testing.T) {
	if got := durationOr(nil); got != v1alpha1.DefaultCertificateDuration {
		t.Errorf("without a duration it is %s, want the default of the API, %s", got, v1alpha1.DefaultCertificateDuration)
	}
}

// policyFile reads the policy file of the certificate controller as the program does.
func policyFile(t *testing.T, spec Spec) policyconfig.Configuration {
	t.Helper()
	i := slices.IndexFunc(spec.Files, func(f File) bool { return strings.HasSuffix(f.Path, "/policy.yaml") })
	if i < 0 || !slices.Contains(spec.Args, "--config="+spec.Files[i].Path) {
		t.Fatalf("arguments %v without the policy file", spec.Args)
	}
	file, err := policyconfig.Read([]byte(spec.Files[i].Content))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPolicyFile(t *testing.T) {
	spec, err := certificateController(fixed(true))
	if err != nil {
		t.Fatal(err)
	}
	policy := policyFile(t, spec).Policy()
	for _, own := range []string{"127.0.0.1", "172.31.0.1", "172.31.16.1", "172.31.0.2", "172.31.0.4", "172.31.16.4", "10.100.0.1", "10.244.0.7"} {
		if !slices.ContainsFunc(policy.ReservedAddresses, func(p netip.Prefix) bool { return p.Contains(netip.MustParseAddr(own)) }) {
			t.Errorf("a node may have %s", own)
		}
	}
	if !slices.Contains(policy.ReservedNames, "oidc.example.com") {
		t.Errorf("anybody may have the issuer's name: %v", policy.ReservedNames)
	}
	if !slices.Contains(policy.ReservedNames, "kubernetes.default.svc.cluster.local") || policy.Bootstrap.UnboundTokens {
		t.Errorf("policy %+v", policy)
	}
}

// A process name says whose component it is, whatever the cluster is called.
func TestProcessNames(t *testing.T) {
	for _, spec := range specs(t, fixed(true)) {
		cluster, name := SplitProcess(spec.Process())
		if cluster != spec.Cluster || name != spec.Name {
			t.Errorf("%s is read as %q of %q", spec.Process(), name, cluster)
		}
		if own := IsManagementPlane(spec.Name) || spec.Name == Registry || spec.Name == LogStore || strings.HasPrefix(spec.Name, "vpc-") || strings.HasPrefix(spec.Name, "balancer-"); own != (cluster == "") {
			t.Errorf("%s belongs to %q", spec.Name, cluster)
		}
	}
	for _, process := range []string{"machine/i-0123456789abcdef0", "cluster/", "cluster/x", "serve", ""} {
		if cluster, name := SplitProcess(process); cluster != "" || name != process {
			t.Errorf("%q is read as %q of %q", process, name, cluster)
		}
	}
}

// Two clusters share no file, port or certificate, and neither has the account's.
func TestClustersShareNothing(t *testing.T) {
	blue, red := fixed(false), fixed(false)
	red.Dir, red.Cluster.Name = "/var/lib/muster/clusters/red", "red"
	for _, spec := range mustSpecs(t, red) {
		raw, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte(blue.Dir)) {
			t.Errorf("%s of one cluster names files of another: %s", spec.Name, raw)
		}
		if bytes.Contains(raw, []byte("/var/lib/muster/pki/issued")) {
			t.Errorf("%s of a cluster has a credential of the account's: %s", spec.Name, raw)
		}
	}
}
