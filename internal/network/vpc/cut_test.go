// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"net/netip"
	"strings"
	"testing"
)

// A machine that is cut off has no packets, nor have its pods, however often that is said, whatever its security groups become; the
// other machine does not notice. Afterwards all is as before, and its table is gone.
func TestCut(t *testing.T) {
	n := newNetwork(t)
	const cutOff, untouched = "192.168.64.11", "192.168.64.13"
	own := interfaceOf(cutOff, openGroup)
	own.Machine = "i-0123456789abcdef0"
	echo(t, listenIn(t, newMachineWith(t, n, own), cutOff+":80"))
	echo(t, listenIn(t, newMachine(t, n, untouched), untouched+":80"))
	client := newMachine(t, n, "192.168.64.12")
	check := func(when string, cut bool) {
		t.Helper()
		if answers(t, client, cutOff+":80", long(!cut)) == cut {
			t.Errorf("%s: the machine is reached: %v", when, cut)
		}
		if !answers(t, client, untouched+":80", generous) {
			t.Errorf("%s: another machine is not reached", when)
		}
	}
	check("before", false)
	for range 2 {
		if err := Cut(t.Context(), n, own, true); err != nil {
			t.Fatal(err)
		}
	}
	check("cut off", true)
	set(t, n, open())
	check("after a change of groups", true)
	for range 2 {
		if err := Cut(t.Context(), n, own, false); err != nil {
			t.Fatal(err)
		}
	}
	check("afterwards", false)
}

// The rules drop what comes from and goes to the machine and its pods, in both hooks, and nothing else.
func TestCutRules(t *testing.T) {
	own := Interface{Machine: "i-0123456789abcdef0", Address: netip.MustParseAddr("172.31.0.5"), PodRange: netip.MustParsePrefix("172.31.9.0/28")}
	rules := cutRules(own, true)
	for _, want := range []string{"ip saddr 172.31.0.5/32 drop", "ip daddr 172.31.0.5/32 drop", "ip saddr 172.31.9.0/28 drop", "ip daddr 172.31.9.0/28 drop", "hook prerouting priority -450", "hook postrouting priority -450"} {
		if n := strings.Count(rules, want); n != 2 && (n != 1 || !strings.HasPrefix(want, "hook")) {
			t.Errorf("%q is there %d times:\n%s", want, n, rules)
		}
	}
	if begins := "table inet cut_i_0123456789abcdef0\ndelete table inet cut_i_0123456789abcdef0\n"; !strings.HasPrefix(rules, begins) || cutRules(own, false) != begins {
		t.Errorf("%s\n%s", rules, cutRules(own, false))
	}
	own.PodRange = netip.Prefix{}
	if n := strings.Count(cutRules(own, true), " drop"); n != 4 {
		t.Errorf("%d rules without a range of pods", n)
	}
}
