// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"net/netip"
	"testing"

	"muster.dev/muster/internal/cluster/machine"
)

func TestAllocate(t *testing.T) {
	for name, test := range map[string]struct {
		vpc  string
		used []string
		want string
	}{
		"first":               {vpc: "192.168.64.0/18", want: "192.168.64.11"},
		"lowest free":         {vpc: "192.168.64.0/18", used: []string{"192.168.64.11", "192.168.64.13"}, want: "192.168.64.12"},
		"of a small VPC":      {vpc: "10.0.0.16/28", want: "10.0.0.27"},
		"last":                {vpc: "10.0.0.16/28", used: []string{"10.0.0.27", "10.0.0.28", "10.0.0.29"}, want: "10.0.0.30"},
		"never the broadcast": {vpc: "10.0.0.16/28", used: []string{"10.0.0.27", "10.0.0.28", "10.0.0.29", "10.0.0.30"}},
		"VPC too small":       {vpc: "10.0.0.16/29"},
		"IPv6":                {vpc: "fd00::/64"},
	} {
		t.Run(name, func(t *testing.T) {
			used := map[netip.Addr]bool{}
			for _, address := range test.used {
				used[netip.MustParseAddr(address)] = true
			}
			got, err := machine.Allocate(netip.MustParsePrefix(test.vpc), used)
			switch {
			case test.want == "" && err == nil:
				t.Errorf("got %s, want an error", got)
			case test.want != "" && err != nil:
				t.Error(err)
			case test.want != "" && got.String() != test.want:
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
