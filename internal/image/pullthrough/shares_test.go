// SPDX-License-Identifier: Apache-2.0

package pullthrough

import (
	"fmt"
	"testing"
)

// However many VPCs take all that they get, one more gets its share.
func TestSlots(t *testing.T) {
	s := newSlots(maxFlights)
	for n, want := range []int{32, 16, 8, 4} {
		vpc := fmt.Sprint("vpc-", n)
		got := 0
		for s.take(vpc) {
			got++
		}
		if got != want {
			t.Errorf("VPC %d gets %d, want %d", n, got, want)
		}
	}
	if s.taken >= maxFlights {
		t.Errorf("all %d are taken", s.taken)
	}
	for vpc, n := range s.vpcs {
		for range n {
			s.give(vpc)
		}
	}
	if s.taken != 0 || len(s.vpcs) != 0 {
		t.Errorf("%+v is left", s)
	}
}

func TestPulling(t *testing.T) {
	p := pulling{vpcs: map[string]int64{}}
	const bound = 1000
	for _, step := range []struct {
		vpc  string
		n    int64
		fits bool
	}{
		{"a", 801, false}, {"a", 800, true}, {"b", 161, false}, {"b", 160, true}, {"a", 1, false}, {"c", 32, true}, {"c", 9, false},
	} {
		if got := p.fits(step.vpc, step.n, bound); got != step.fits {
			t.Errorf("%+v: %t", step, got)
		}
		if step.fits && !p.add(step.vpc, step.n, bound) {
			t.Errorf("%+v is not added", step)
		}
	}
	if p.add("a", 1, bound) {
		t.Error("a VPC gets more than its share")
	}
	p.end("a", 801)
	p.end("b", 160)
	p.end("c", 32)
	if p.total != 0 || len(p.vpcs) != 0 || !p.fits("d", 800, bound) {
		t.Errorf("%+v is left", p.vpcs)
	}
	if p.fits("d", 1<<62, bound) || p.fits("d", 1001, bound) {
		t.Error("more than all fits")
	}
}
