// SPDX-License-Identifier: Apache-2.0

package nodeconfig_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/node/nodeconfig"
)

func TestClusterDNS(t *testing.T) {
	for cidr, want := range map[string]string{
		"10.100.0.0/16":           "10.100.0.10",
		"172.20.0.0/16":           "172.20.0.10",
		"172.20.0.16/28":          "172.20.0.26", // nodeadm: 172.20.0.10, which is outside
		"10.0.255.0/24":           "10.0.255.10",
		"10.0.255.7/24":           "10.0.255.10",
		"10.0.0.248/29":           "",
		"255.255.255.248/29":      "",
		"fc00::/7":                "fc00::a",
		"fd30:1c53:5f8a::/108":    "fd30:1c53:5f8a::a",
		"fd30:1c53:5f8a::100/120": "fd30:1c53:5f8a::10a", // nodeadm: ...::100a, which is outside
		"fd00::/125":              "",
	} {
		got, err := nodeconfig.ClusterDNS(netip.MustParsePrefix(cidr))
		if want == "" {
			if err == nil {
				t.Errorf("ClusterDNS(%s) is %s, want an error", cidr, got)
			}
			continue
		}
		if err != nil || got.String() != want {
			t.Errorf("ClusterDNS(%s) is %s, %v; want %s", cidr, got, err, want)
		}
	}
	if _, err := nodeconfig.ClusterDNS(netip.Prefix{}); err == nil {
		t.Error("no error without a CIDR")
	}
}

func FuzzClusterDNS(f *testing.F) {
	f.Add("10.100.0.0/16")
	f.Add("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/127")
	f.Fuzz(func(t *testing.T, text string) {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return
		}
		if dns, err := nodeconfig.ClusterDNS(prefix); err == nil && !prefix.Contains(dns) {
			t.Errorf("%s is outside of %s", dns, prefix)
		}
	})
}

func TestMaxPods(t *testing.T) {
	for _, c := range []struct {
		instanceType, expression string
		want                     int32
		source                   string
	}{
		{"m4.xlarge", "", 58, "m4.xlarge: 4 network interfaces with 15 addresses each"},
		{"t3.medium", "", 17, "t3.medium: 3 network interfaces with 6 addresses each"},
		{"a1.2xlarge", "", 58, "a1.2xlarge: 4 network interfaces with 15 addresses each"}, // the first of the table
		{"z9.mega", "", 110, `the default: the network interfaces of "z9.mega" are not known`},
		{"m4", "", 110, `the default: the network interfaces of "m4" are not known`},
		{"#", "", 110, `the default: the network interfaces of "#" are not known`},
		{"", "", 110, "the default: the network interfaces of the machine's type are not known"},
		{"t3.medium", "(default_enis * (ips_per_eni - 1)) + 3", 18, "spec.kubelet.maxPodsExpression over t3.medium: 3 network interfaces with 6 addresses each"},
		{"t3.medium", "(default_enis * ((ips_per_eni - 1) * 16)) + 2", 242, "spec.kubelet.maxPodsExpression over t3.medium: 3 network interfaces with 6 addresses each"},
		{"m4.xlarge", "max_pods < 30 ? max_pods : 30", 30, "spec.kubelet.maxPodsExpression over m4.xlarge: 4 network interfaces with 15 addresses each"},
		{"m4.xlarge", "double(max_pods) / 2.0", 29, "spec.kubelet.maxPodsExpression over m4.xlarge: 4 network interfaces with 15 addresses each"},
		{"m4.xlarge", `"417"`, 417, "spec.kubelet.maxPodsExpression over m4.xlarge: 4 network interfaces with 15 addresses each"},
		{"", "max_pods - 10", 100, "spec.kubelet.maxPodsExpression over the default: the network interfaces of the machine's type are not known"},
	} {
		got, source, err := nodeconfig.MaxPods(c.instanceType, c.expression)
		if err != nil || got != c.want || source != c.source {
			t.Errorf("MaxPods(%q, %q) is %d, %q, %v; want %d, %q", c.instanceType, c.expression, got, source, err, c.want, c.source)
		}
	}
}

// Where EKS's nodes take the formula's number and say so in a log only, a machine of muster's does not start with it.
func TestMaxPodsRefuses(t *testing.T) {
	for _, c := range []struct{ instanceType, expression, want string }{
		{"m4.xlarge", "max_pod", "undeclared reference to 'max_pod'"},
		{"m4.xlarge", "max_pods +", "is not valid CEL"},
		{"m4.xlarge", "true", "yields bool, not a number"},
		{"m4.xlarge", "[max_pods]", "yields list(int), not a number"},
		{"m4.xlarge", `"many"`, "not a whole number"},
		{"m4.xlarge", "max_pods - 58", "yields 0; it must be between 1 and 2147483647"},
		{"m4.xlarge", "max_pods - 100", "yields -42"},
		{"m4.xlarge", "2147483648", "yields 2147483648"},
		{"m4.xlarge", "9223372036854775807 + max_pods", "cannot be evaluated"},
		{"m4.xlarge", "max_pods / 0", "cannot be evaluated"},
		{"m4.xlarge", "[1,2,3,4,5,6,7,8,9].map(a, [1,2,3,4,5,6,7,8,9].map(b, [1,2,3,4,5,6,7,8,9].map(c, [1,2,3,4,5,6,7,8,9].map(d, a)))).size()", "cannot be evaluated"},
		{"m4.xlarge", "1" + strings.Repeat("+1", 600), "at most 1024 are allowed"},
		{"z9.mega", "default_enis * 2", "uses default_enis"},
		{"", "ips_per_eni", "uses ips_per_eni"},
	} {
		got, _, err := nodeconfig.MaxPods(c.instanceType, c.expression)
		if err == nil || !strings.HasPrefix(err.Error(), "spec.kubelet.maxPodsExpression: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("MaxPods(%q, %q) is %d, %v; want an error with %q", c.instanceType, c.expression, got, err, c.want)
		}
	}
}

func FuzzMaxPods(f *testing.F) {
	f.Add("m4.xlarge", "max_pods * 2 - default_enis")
	f.Add("", `int("12") + [1, 2].size()`)
	f.Fuzz(func(t *testing.T, instanceType, expression string) {
		if pods, source, err := nodeconfig.MaxPods(instanceType, expression); err == nil && (pods < 1 || source == "") {
			t.Errorf("%d pods of %q", pods, source)
		}
	})
}

func TestReserved(t *testing.T) {
	for _, c := range []struct {
		cpus        int
		memory      int64
		maxPods     int32
		cpu, wanted string
	}{
		{1, 4 << 30, 58, "60m", "893Mi"},
		{2, 8 << 30, 110, "70m", "1465Mi"},
		{4, 16 << 30, 58, "80m", "893Mi"},
		{8, 32 << 30, 20, "90m", "475Mi"},
		{64, 256 << 30, 737, "230m", "8362Mi"},
		{1, 1 << 30, 110, "60m", "256Mi"},        // a quarter of what there is
		{2, 8 << 30, 300000000, "70m", "2048Mi"}, // no overflow
	} {
		want := map[string]string{"cpu": c.cpu, "memory": c.wanted, "ephemeral-storage": "1Gi"}
		if diff := cmp.Diff(want, nodeconfig.Reserved(c.cpus, c.memory, c.maxPods)); diff != "" {
			t.Errorf("%d CPUs, %d bytes, %d pods (-want +got):\n%s", c.cpus, c.memory, c.maxPods, diff)
		}
	}
}
