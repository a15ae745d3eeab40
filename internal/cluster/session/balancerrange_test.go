// SPDX-License-Identifier: Apache-2.0

package session

import (
	"net/netip"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/balancerrange"
	"muster.dev/muster/internal/network/loadbalancer"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/platform/statedir"
)

// A range is kept until another one is chosen, and it is no VPC's.
func TestBalancerRangeIsKept(t *testing.T) {
	s := Session{State: statedir.Dir(t.TempDir()), Wanted: clusterconfig.Default(0, v1alpha1.ProviderSimulated)}
	expect := func(want netip.Prefix) {
		t.Helper()
		if got, err := balancerrange.Read(s.State); err != nil || got != want {
			t.Errorf("the range is %s, %v, want %s", got, err, want)
		}
	}
	refused := func(text string) {
		t.Helper()
		s.BalancerRange = netip.MustParsePrefix(text)
		if err := s.check("", false); err == nil || !strings.Contains(err.Error(), "--load-balancer-range: "+text+" overlaps 172.31.0.0/16, the range of VPC vpc-") {
			t.Errorf("%s: %v", text, err)
		}
	}
	refused("172.31.7.0/24") // of the default VPC that there will be
	refused("172.0.0.0/8")
	for _, step := range []struct {
		wanted  netip.Prefix
		changed bool
		then    netip.Prefix
	}{
		{netip.Prefix{}, false, loadbalancer.DefaultRange},
		{loadbalancer.DefaultRange, false, loadbalancer.DefaultRange},
		{netip.MustParsePrefix("198.51.100.0/28"), true, netip.MustParsePrefix("198.51.100.0/28")},
		{netip.MustParsePrefix("198.51.100.0/28"), false, netip.MustParsePrefix("198.51.100.0/28")},
		{netip.Prefix{}, false, netip.MustParsePrefix("198.51.100.0/28")},
		{loadbalancer.DefaultRange, true, loadbalancer.DefaultRange},
	} {
		s.BalancerRange = step.wanted
		if err := s.check("", false); err != nil {
			t.Fatal(err)
		}
		if _, err := s.save(t.Context(), &Outcome{}); err != nil {
			t.Fatal(err)
		}
		if changed, err := balancerrange.Keep(s.State, s.BalancerRange); err != nil || changed != step.changed {
			t.Errorf("asked for %q: changed %v, %v", step.wanted, changed, err)
		}
		expect(step.then)
	}
	refused("172.31.7.0/24") // of the default VPC that there is
}
