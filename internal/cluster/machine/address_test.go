// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"net/netip"
	"testing"

	"muster.dev/muster/internal/cluster/machine"
)

func TestAllocate(t *testing.T) {
	for name, test := range map[string]struct {
		subnet string
		used   []string
		want   string
	}{
		"first":               {subnet: "172.31.16.0/20", want: "172.31.16.4"},
		"lowest free":         {subnet: "172.31.16.0/20", used: []string{"172.31.16.4", "172.31.16.6"}, want: "172.31.16.5"},
		"of a small subnet":   {subnet: "10.0.0.16/28", want: "10.0.0.20"},
		"last":                {subnet: "10.0.0.24/29", used: []string{"10.0.0.28", "10.0.0.29"}, want: "10.0.0.30"},
		"never the broadcast": {subnet: "10.0.0.24/29", used: []string{"10.0.0.28", "10.0.0.29", "10.0.0.30"}},
		"too small":           {subnet: "10.0.0.16/30"},
		"IPv6":                {subnet: "fd00::/64"},
	} {
		t.Run(name, func(t *testing.T) {
			used := map[netip.Addr]bool{}
			for _, address := range test.used {
				used[netip.MustParseAddr(address)] = true
			}
			got, err := machine.Allocate(netip.MustParsePrefix(test.subnet), used)
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
