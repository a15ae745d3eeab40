// SPDX-License-Identifier: Apache-2.0

package scalingplan_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/scalingplan"
)

// operate does one thing to a group that people, machines or places do to it, several of which may go on at the same time.
func (f *fleet) operate(t *rapid.T) {
	var counted, aside []int
	for k := range f.all {
		switch i := f.all[k]; {
		case i.Counts():
			counted = append(counted, k)
		case i.State == v1alpha1.LifecycleStandby && i.Wish == v1alpha1.WishStandby:
			aside = append(aside, k)
		}
	}
	one := func(of []int) *scalingplan.Instance { return &f.all[rapid.SampledFrom(of).Draw(t, "instance")] }
	switch what := rapid.IntRange(0, 11).Draw(t, "operation"); {
	case what == 0:
		f.g.Desired = rapid.IntRange(f.g.Min, f.g.Max).Draw(t, "desired")
	case what == 1 && f.g.Refresh == nil:
		f.g.Refresh = &scalingplan.Refresh{MinHealthy: rapid.SampledFrom([]int{0, 50, 90}).Draw(t, "min healthy"), MaxHealthy: rapid.SampledFrom([]int{100, 120, 200}).Draw(t, "max healthy")}
		for k := range f.all {
			f.all[k].Outdated = true
		}
	case what == 2:
		f.g.Refresh = nil
	case what == 3:
		f.g.Avoid = nil
		for _, s := range f.g.Subnets {
			if rapid.Bool().Draw(t, "full") {
				f.g.Avoid = append(f.g.Avoid, scalingplan.Place{Subnet: s.ID, Type: f.g.Types[0].Name})
			}
		}
	case what == 4:
		f.g.Suspended = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"Launch", "Terminate", "AZRebalance", "HealthCheck", "ReplaceUnhealthy", "InstanceRefresh"}), 0, 2, rapid.ID).Draw(t, "suspended")
	case what == 5:
		f.g.HoldsLaunch, f.g.HoldsTermination = rapid.Bool().Draw(t, "holds launch"), rapid.Bool().Draw(t, "holds termination")
	case what == 6 && len(aside) > 0: // as ExitStandby does it
		if i := one(aside); scalingplan.Capacity(f.all)+i.Type.Weight <= f.g.Max && f.g.Desired+i.Type.Weight <= f.g.Max {
			i.Wish = ""
			f.g.Desired += i.Type.Weight
		}
	case what >= 7 && len(counted) > 0:
		i := one(counted)
		switch what {
		case 7:
			i.Wish, i.WishCause = v1alpha1.WishTerminated, "asked"
		case 8:
			i.Wish, i.WishCause = rapid.SampledFrom([]v1alpha1.Wish{v1alpha1.WishStandby, v1alpha1.WishDetached, v1alpha1.WishUnhealthy}).Draw(t, "wish"), "asked"
		case 9:
			i.Protected = !i.Protected
		case 10:
			i.Machine = scalingplan.Stopped
		case 11:
			i.Machine = rapid.SampledFrom([]scalingplan.Machine{scalingplan.Ending, scalingplan.Gone}).Draw(t, "gone")
		}
	}
}

// chosen reports whether the group itself chose an instance to end, and nobody asked for that.
func chosen(a scalingplan.Action) bool {
	ends := a.Kind == scalingplan.End || a.Kind == scalingplan.Move && a.State == v1alpha1.LifecycleTerminatingWait
	return ends && slices.ContainsFunc([]string{"shrinking the capacity", "to balance instances", "an instance refresh"}, func(s string) bool { return strings.Contains(a.Cause, s) })
}

// Whatever happens to a group at the same time: it never grows above its maximum, it ends nothing by its own choice that is
// protected or leaves it below its minimum, and it comes to its size once it is left alone.
func TestOperationsAtTheSameTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &fleet{g: drawGroup(t), now: start}
		f.g.Types[0].Weight = rapid.IntRange(1, 2).Draw(t, "weight")
		if f.g.Types[0].Weight == 2 {
			f.g.Min, f.g.Max, f.g.Desired = 2*f.g.Min, 2*f.g.Max, 2*f.g.Desired
		}
		for range 60 {
			for range rapid.IntRange(0, 2).Draw(t, "operations") {
				f.operate(t)
			}
			protected := map[string]bool{}
			for _, i := range f.all {
				protected[i.ID] = i.Protected
			}
			byChoice := false
			for _, a := range f.step(t) {
				if byChoice = byChoice || chosen(a); chosen(a) && protected[a.Instance] {
					t.Fatalf("%+v is about an instance that is protected", a)
				}
			}
			if have := scalingplan.Capacity(f.all); byChoice && have < f.g.Min {
				t.Fatalf("the group chose to have %d, and its minimum is %d: %+v", have, f.g.Min, f.all)
			}
			f.pass()
		}
		f.g.Refresh, f.g.Avoid, f.g.Suspended = nil, nil, nil
		for k := range f.all {
			f.all[k].Protected = false
			if f.all[k].Wish == v1alpha1.WishUnhealthy {
				f.all[k].Wish = ""
			}
		}
		f.settle(t)
		if have := scalingplan.Capacity(f.all); have != f.g.Desired-f.g.Desired%f.g.Types[0].Weight && have != f.g.Desired+f.g.Desired%f.g.Types[0].Weight {
			t.Fatalf("capacity %d, want %d: %+v", have, f.g.Desired, f.all)
		}
	})
}
