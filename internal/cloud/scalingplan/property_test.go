// SPDX-License-Identifier: Apache-2.0

package scalingplan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/scalingplan"
)

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// fleet carries out plans: machines that were asked for run after a while, those that end go.
type fleet struct {
	g    scalingplan.Group
	all  []scalingplan.Instance
	now  time.Time
	made int
}

// step carries out one plan, and fails the test if an action breaks a law.
func (f *fleet) step(t *rapid.T) []scalingplan.Action {
	actions := scalingplan.Next(f.g, slices.Clone(f.all), f.now)
	before := scalingplan.Capacity(f.all)
	for _, a := range actions {
		if a.Cause == "" {
			t.Fatalf("%+v has no cause", a)
		}
		f.apply(t, a)
	}
	most := f.g.Max
	for _, a := range actions {
		if a.Spare {
			most = f.g.Max + a.Type.Weight
		}
	}
	if have := scalingplan.Capacity(f.all); have > most && have > before {
		t.Fatalf("the group has %d, and its maximum is %d, after %+v", have, f.g.Max, actions)
	}
	return actions
}

func (f *fleet) apply(t *rapid.T, a scalingplan.Action) {
	if a.Kind == scalingplan.Launch {
		f.made++
		f.all = append(f.all, scalingplan.Instance{
			ID: fmt.Sprintf("new-%03d", f.made), Subnet: a.Subnet, Zone: zoneOf(f.g, a.Subnet), Type: a.Type, State: v1alpha1.LifecyclePending, Since: f.now, Launched: f.now, Spare: a.Spare, Spot: a.Spot,
		})
		return
	}
	at := slices.IndexFunc(f.all, func(i scalingplan.Instance) bool { return i.ID == a.Instance })
	if at < 0 {
		t.Fatalf("%+v is about an instance that is not there", a)
	}
	i := &f.all[at]
	switch a.Kind { //nolint:exhaustive // launches are done above
	case scalingplan.Move:
		i.State, i.Since, i.Actions = a.State, f.now, nil
		if a.State == v1alpha1.LifecyclePendingWait || a.State == v1alpha1.LifecycleTerminatingWait {
			i.Actions = []v1alpha1.LifecycleAction{{Hook: "h", Deadline: metav1.NewTime(f.now.Add(time.Minute)), Last: metav1.NewTime(f.now.Add(time.Hour)), DefaultResult: v1alpha1.LifecycleContinue}}
		}
	case scalingplan.End:
		i.State, i.Machine = v1alpha1.LifecycleTerminating, scalingplan.Gone
	case scalingplan.Leave, scalingplan.Forget:
		f.all = slices.Delete(f.all, at, at+1)
	}
}

// pass lets time go by: what was asked for runs.
func (f *fleet) pass() {
	f.now = f.now.Add(time.Minute)
	for k := range f.all {
		if f.all[k].Machine == scalingplan.Ending {
			f.all[k].Machine = scalingplan.Gone
		}
		if i := &f.all[k]; i.Machine == scalingplan.Requested || i.Machine == scalingplan.Starting {
			i.Machine = scalingplan.Running
		}
	}
}

// settle carries out plans until nothing is to be done.
func (f *fleet) settle(t *rapid.T) {
	for range 400 {
		if len(f.step(t)) == 0 && !slices.ContainsFunc(f.all, func(i scalingplan.Instance) bool { return i.Machine == scalingplan.Requested || len(i.Actions) > 0 }) {
			if f.g.Refresh == nil || !slices.ContainsFunc(f.all, func(i scalingplan.Instance) bool { return i.Outdated && i.Counts() && !i.Protected }) {
				return
			}
		}
		f.pass()
	}
	t.Fatalf("it does not settle: %+v\n%+v", f.g, f.all)
}

func zoneOf(g scalingplan.Group, subnet string) string {
	for _, s := range g.Subnets {
		if s.ID == subnet {
			return s.Zone
		}
	}
	return ""
}

func drawGroup(t *rapid.T) scalingplan.Group {
	g := scalingplan.Group{Types: []scalingplan.Type{{Weight: 1}}, OnDemandPercent: 100}
	for i := range rapid.IntRange(1, 5).Draw(t, "subnets") {
		g.Subnets = append(g.Subnets, scalingplan.Subnet{ID: fmt.Sprint("s", i), Zone: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone")})
	}
	g.Min = rapid.IntRange(0, 6).Draw(t, "min")
	g.Max = g.Min + rapid.IntRange(0, 6).Draw(t, "more")
	g.Desired = rapid.IntRange(g.Min, g.Max).Draw(t, "desired")
	g.HoldsLaunch, g.HoldsTermination = rapid.Bool().Draw(t, "holds launch"), rapid.Bool().Draw(t, "holds termination")
	g.Policies = rapid.SampledFrom([][]string{nil, {"OldestInstance"}, {"NewestInstance"}, {"OldestLaunchTemplate", "NewestInstance"}}).Draw(t, "policies")
	return g
}

func drawInstances(t *rapid.T, g scalingplan.Group) []scalingplan.Instance {
	var all []scalingplan.Instance
	for i := range rapid.IntRange(0, 12).Draw(t, "instances") {
		s := rapid.SampledFrom(g.Subnets).Draw(t, "subnet")
		all = append(all, scalingplan.Instance{
			ID: fmt.Sprintf("old-%03d", i), Subnet: s.ID, Zone: s.Zone, Type: g.Types[0], Since: start, Launched: start.Add(time.Duration(rapid.IntRange(-9, 0).Draw(t, "age")) * time.Hour),
			State:   rapid.SampledFrom([]v1alpha1.LifecycleState{v1alpha1.LifecyclePending, v1alpha1.LifecycleInService, v1alpha1.LifecycleInService, v1alpha1.LifecycleStandby, v1alpha1.LifecycleTerminating}).Draw(t, "state"),
			Machine: rapid.SampledFrom([]scalingplan.Machine{scalingplan.Requested, scalingplan.Starting, scalingplan.Running, scalingplan.Running, scalingplan.Stopped, scalingplan.Ending, scalingplan.Gone}).Draw(t, "machine"),
			Wish:    rapid.SampledFrom([]v1alpha1.Wish{"", "", "", v1alpha1.WishTerminated, v1alpha1.WishStandby, v1alpha1.WishDetached, v1alpha1.WishUnhealthy}).Draw(t, "wish"), WishCause: "asked",
			Template: int64(rapid.IntRange(0, 3).Draw(t, "template")),
		})
		if i := &all[len(all)-1]; rapid.IntRange(0, 5).Draw(t, "held") == 0 {
			i.State = rapid.SampledFrom([]v1alpha1.LifecycleState{v1alpha1.LifecyclePendingWait, v1alpha1.LifecycleTerminatingWait}).Draw(t, "held state")
			i.Actions = []v1alpha1.LifecycleAction{{
				Hook: "h", Deadline: metav1.NewTime(start.Add(time.Hour)), Last: metav1.NewTime(start.Add(time.Hour)),
				DefaultResult: rapid.SampledFrom([]v1alpha1.LifecycleResult{v1alpha1.LifecycleContinue, v1alpha1.LifecycleAbandon}).Draw(t, "default"),
			}}
		}
	}
	return all
}

// From any state a group comes to its desired capacity, in balanced zones as far as its bounds let it, and stays there.
func TestConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		f := &fleet{g: g, all: drawInstances(t, g), now: start}
		f.settle(t)
		if have := scalingplan.Capacity(f.all); have != g.Desired {
			t.Fatalf("capacity %d, want %d: %+v", have, g.Desired, f.all)
		}
		zones := map[string]int{}
		for _, s := range g.Subnets {
			zones[s.Zone] = 0
		}
		for _, i := range f.all {
			if i.Counts() {
				zones[i.Zone]++
			}
		}
		var counts []int
		for _, n := range zones {
			counts = append(counts, n)
		}
		if slices.Max(counts)-slices.Min(counts) > 1 {
			t.Fatalf("zones %v of %+v", zones, f.all)
		}
	})
}

// No plan that shrinks, balances or refreshes leaves less than the minimum, and protected instances stay.
func TestNeverBelowMinimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		g.HoldsLaunch = false
		f := &fleet{g: g, now: start}
		f.settle(t)
		f.g.Desired = rapid.IntRange(g.Min, g.Max).Draw(t, "next")
		if rapid.Bool().Draw(t, "refresh") {
			f.g.Refresh = &scalingplan.Refresh{MinHealthy: rapid.SampledFrom([]int{0, 50, 90}).Draw(t, "min healthy"), MaxHealthy: rapid.SampledFrom([]int{100, 120, 200}).Draw(t, "max healthy")}
		}
		protected := map[string]bool{}
		for k := range f.all {
			f.all[k].Protected = rapid.IntRange(0, 3).Draw(t, "protected") == 0
			f.all[k].Outdated = f.g.Refresh != nil
			protected[f.all[k].ID] = f.all[k].Protected
		}
		for range 60 {
			f.step(t)
			if have := scalingplan.Capacity(f.all); have < g.Min {
				t.Fatalf("capacity %d, and the minimum is %d", have, g.Min)
			}
			for _, i := range f.all {
				if protected[i.ID] && !i.Counts() {
					t.Fatalf("%+v is protected", i)
				}
			}
			f.pass()
		}
	})
}

// A refresh replaces every outdated instance that is not protected, and keeps as many healthy as it says.
func TestRefreshReplacesAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		g.HoldsLaunch, g.HoldsTermination = false, rapid.Bool().Draw(t, "held")
		f := &fleet{g: g, now: start}
		f.settle(t)
		least := rapid.SampledFrom([]int{0, 50, 90, 100}).Draw(t, "min healthy")
		f.g.Refresh = &scalingplan.Refresh{MinHealthy: least, MaxHealthy: rapid.SampledFrom([]int{100, 150}).Draw(t, "max healthy")}
		if least == 100 {
			f.g.Refresh.MaxHealthy, f.g.Max = 110, max(g.Max, g.Desired+1)
		}
		for k := range f.all {
			f.all[k].Outdated = true
		}
		floor := (g.Desired*least + 99) / 100
		if least < 100 {
			floor = min(floor, g.Desired-1)
		}
		for range 100 {
			f.step(t)
			healthy := 0
			for _, i := range f.all {
				if i.Counts() && i.State == v1alpha1.LifecycleInService {
					healthy++
				}
			}
			if healthy < floor {
				t.Fatalf("%d healthy of %d at %d percent", healthy, g.Desired, least)
			}
			f.pass()
		}
		for _, i := range f.all {
			if i.Outdated {
				t.Fatalf("%+v was not replaced", i)
			}
		}
		if have := scalingplan.Capacity(f.all); have != g.Desired {
			t.Fatalf("capacity %d, want %d", have, g.Desired)
		}
	})
}

// Weights: never above the maximum, and nothing more to do is found.
func TestWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		g.Max += 3
		g.Types = []scalingplan.Type{{Name: "big", Weight: rapid.IntRange(2, 4).Draw(t, "big")}, {Name: "small", Weight: 1}}
		for _, s := range g.Subnets {
			if rapid.IntRange(0, 4).Draw(t, "full") == 0 {
				g.Avoid = append(g.Avoid, scalingplan.Place{Subnet: s.ID, Type: "big"})
			}
		}
		f := &fleet{g: g, now: start}
		f.settle(t)
		if have := scalingplan.Capacity(f.all); have < g.Desired || have > g.Max {
			t.Fatalf("capacity %d, want %d to %d", have, g.Desired, g.Max)
		}
		f.g.Desired = rapid.IntRange(g.Min, g.Max).Draw(t, "next")
		f.settle(t)
	})
}

// A group that is deleted ends everything, without hooks.
func TestDeleting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		f := &fleet{g: g, all: drawInstances(t, g), now: start}
		f.g.Deleting = true
		for range 4 {
			f.step(t)
			f.pass()
			for k := range f.all {
				if f.all[k].Machine == scalingplan.Ending {
					f.all[k].Machine = scalingplan.Gone
				}
			}
		}
		if len(f.all) > 0 {
			t.Fatalf("left: %+v", f.all)
		}
	})
}
