// SPDX-License-Identifier: Apache-2.0

package scalingplan_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/scalingplan"
)

func two() scalingplan.Group {
	return scalingplan.Group{Max: 4, Desired: 2, Subnets: []scalingplan.Subnet{{"s1", "a"}, {"s2", "b"}}, Types: []scalingplan.Type{{Weight: 1}}, OnDemandPercent: 100}
}

func inService(id, subnet, zone string) scalingplan.Instance {
	return scalingplan.Instance{
		ID: id, Subnet: subnet, Zone: zone, Type: scalingplan.Type{Weight: 1}, State: v1alpha1.LifecycleInService, Machine: scalingplan.Running, Since: start.Add(-time.Hour), Launched: start.Add(-time.Hour),
	}
}

// shown is a plan, in short: what, about which instance or subnet, in which state.
func shown(actions []scalingplan.Action) string {
	var all []string
	for _, a := range actions {
		all = append(all, strings.TrimSpace(strings.Join([]string{string(a.Kind), a.Instance + a.Subnet, string(a.State)}, " ")))
	}
	return strings.Join(all, ", ")
}

func TestNext(t *testing.T) {
	held := func(i scalingplan.Instance, state v1alpha1.LifecycleState, result, standard v1alpha1.LifecycleResult, left time.Duration) scalingplan.Instance {
		i.State = state
		i.Actions = []v1alpha1.LifecycleAction{{Hook: "ready", Result: result, DefaultResult: standard, Deadline: metav1.NewTime(start.Add(left)), Last: metav1.NewTime(start.Add(time.Hour))}}
		return i
	}
	with := func(i scalingplan.Instance, change func(*scalingplan.Instance)) scalingplan.Instance {
		change(&i)
		return i
	}
	i1, i2, i3 := inService("i-1", "s1", "a"), inService("i-2", "s2", "b"), inService("i-3", "s1", "a")
	spare := with(inService("i-4", "s2", "b"), func(i *scalingplan.Instance) { i.Spare = true })
	pending := with(i1, func(i *scalingplan.Instance) { i.State = v1alpha1.LifecyclePending })
	for name, test := range map[string]struct {
		change func(*scalingplan.Group)
		all    []scalingplan.Instance
		want   string
		cause  string // of the first action
	}{
		"from nothing": {nil, nil, "Launch s1, Launch s2", "At 2026-11-29T12:00:00Z an instance was started in response to a difference between desired and actual capacity, increasing the capacity from 0 to 1."},
		"by a request": {func(g *scalingplan.Group) {
			g.Change = "At X a user request explicitly set group desired capacity changing the desired capacity from 1 to 2."
		}, []scalingplan.Instance{i1}, "Launch s2", "At X a user request explicitly set group desired capacity changing the desired capacity from 1 to 2.  At 2026-11-29T12:00:00Z an instance was started"},
		"enough":                    {nil, []scalingplan.Instance{i1, i2}, "", ""},
		"launch is suspended":       {func(g *scalingplan.Group) { g.Suspended = []string{"Launch"} }, nil, "", ""},
		"it runs":                   {nil, []scalingplan.Instance{pending, i2}, "Move i-1 InService", "the instance runs"},
		"it runs, and is held":      {func(g *scalingplan.Group) { g.HoldsLaunch = true }, []scalingplan.Instance{pending, i2}, "Move i-1 Pending:Wait", ""},
		"held":                      {nil, []scalingplan.Instance{held(i1, v1alpha1.LifecyclePendingWait, "", v1alpha1.LifecycleAbandon, time.Second), i2}, "", ""},
		"continued":                 {nil, []scalingplan.Instance{held(i1, v1alpha1.LifecyclePendingWait, v1alpha1.LifecycleContinue, v1alpha1.LifecycleAbandon, time.Second), i2}, "Move i-1 InService", ""},
		"abandoned":                 {nil, []scalingplan.Instance{held(i1, v1alpha1.LifecyclePendingWait, v1alpha1.LifecycleAbandon, v1alpha1.LifecycleContinue, time.Second), i2}, "End i-1, Launch s1", "the lifecycle hook ready, whose action was abandoned"},
		"time is up: continue":      {nil, []scalingplan.Instance{held(i1, v1alpha1.LifecyclePendingWait, "", v1alpha1.LifecycleContinue, 0), i2}, "Move i-1 InService", ""},
		"time is up: abandon":       {nil, []scalingplan.Instance{held(i1, v1alpha1.LifecyclePendingWait, "", v1alpha1.LifecycleAbandon, 0), i2}, "End i-1, Launch s1", ""},
		"one too many":              {nil, []scalingplan.Instance{i1, i2, i3}, "End i-1", "shrinking the capacity from 3 to 2.  At 2026-11-29T12:00:00Z instance i-1 was selected for termination."},
		"the newest":                {func(g *scalingplan.Group) { g.Policies = []string{"NewestInstance"} }, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Launched = start.Add(-9 * time.Hour) }), i2, i3}, "End i-3", ""},
		"the oldest template":       {nil, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Template = 2 }), i2, with(i3, func(i *scalingplan.Instance) { i.Template = 1 })}, "End i-3", ""},
		"protected":                 {nil, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Protected = true }), i2, i3}, "End i-3", ""},
		"all protected":             {func(g *scalingplan.Group) { g.Desired = 0 }, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Protected = true })}, "", ""},
		"termination is suspended":  {func(g *scalingplan.Group) { g.Suspended = []string{"Terminate"} }, []scalingplan.Instance{i1, i2, i3}, "", ""},
		"one too many, held":        {func(g *scalingplan.Group) { g.HoldsTermination = true }, []scalingplan.Instance{i1, i2, i3}, "Move i-1 Terminating:Wait", ""},
		"held at its end":           {nil, []scalingplan.Instance{held(i3, v1alpha1.LifecycleTerminatingWait, "", v1alpha1.LifecycleAbandon, time.Second), i1, i2}, "", ""},
		"let go at its end":         {nil, []scalingplan.Instance{held(i3, v1alpha1.LifecycleTerminatingWait, "", v1alpha1.LifecycleAbandon, 0), i1, i2}, "End i-3", ""},
		"stopped":                   {nil, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Machine = scalingplan.Stopped }), i2}, "End i-1, Launch s1", "in response to an EC2 health check"},
		"stopped, not looked at":    {func(g *scalingplan.Group) { g.Suspended = []string{"HealthCheck"} }, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Machine = scalingplan.Stopped }), i2}, "", ""},
		"stopped, not replaced":     {func(g *scalingplan.Group) { g.Suspended = []string{"ReplaceUnhealthy"} }, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Machine = scalingplan.Stopped }), i2}, "", ""},
		"unhealthy":                 {nil, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Wish = v1alpha1.WishUnhealthy }), i2}, "End i-1, Launch s1", "in response to a user health-check"},
		"gone":                      {nil, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Machine = scalingplan.Gone }), i2}, "Forget i-1, Launch s1", ""},
		"ended by somebody":         {nil, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Machine = scalingplan.Ending }), i2}, "Move i-1 Terminating, Launch s1", "in response to an EC2 health check"},
		"to standby":                {func(g *scalingplan.Group) { g.Desired = 1 }, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Wish, i.WishCause = v1alpha1.WishStandby, "asked" }), i2}, "Move i-1 Standby", "asked"},
		"out of standby":            {nil, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.State = v1alpha1.LifecycleStandby }), i2}, "Move i-1 InService", ""},
		"out of standby, stopped":   {nil, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.State, i.Machine = v1alpha1.LifecycleStandby, scalingplan.Stopped }), i2}, "Move i-1 InService, End i-1, Launch s1", ""},
		"detached":                  {func(g *scalingplan.Group) { g.Desired = 1 }, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Wish, i.WishCause = v1alpha1.WishDetached, "asked" }), i2}, "Leave i-1", "asked"},
		"terminated":                {nil, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Wish, i.WishCause = v1alpha1.WishTerminated, "asked" }), i2}, "End i-1, Launch s1", "asked"},
		"zones differ":              {nil, []scalingplan.Instance{i1, i3}, "Launch s2", "At 2026-11-29T12:00:00Z availability zones a b had 2 0 instances respectively.  An instance was launched to aid in balancing the group's zones."},
		"the other one goes":        {nil, []scalingplan.Instance{i1, i3, spare}, "End i-1", "At 2026-11-29T11:00:00Z instances were launched to balance instances in zones b with other zones resulting in more than desired number of instances in the group.  At 2026-11-29T12:00:00Z an instance was taken out of service in response to a difference between desired and actual capacity, shrinking the capacity from 3 to 2."},
		"not before it serves":      {nil, []scalingplan.Instance{i1, i3, with(spare, func(i *scalingplan.Instance) { i.State = v1alpha1.LifecyclePending; i.Machine = scalingplan.Starting })}, "", ""},
		"a zone that it has left":   {nil, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Subnet, i.Zone = "s9", "z" }), i2}, "Launch s1", "availability zones a b z had 0 1 1 instances respectively"},
		"and then it goes":          {nil, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Subnet, i.Zone = "s9", "z" }), i2, i3}, "End i-1", ""},
		"zones differ, no room":     {func(g *scalingplan.Group) { g.Max, g.Min = 2, 2 }, []scalingplan.Instance{i1, i3}, "Launch s2", ""},
		"zones differ, protected":   {nil, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Protected = true }), with(i3, func(i *scalingplan.Instance) { i.Protected = true })}, "", ""},
		"zones differ, a full zone": {func(g *scalingplan.Group) { g.Avoid = []scalingplan.Place{{"s2", ""}} }, []scalingplan.Instance{i1, i3}, "", ""},
		"zones differ, suspended":   {func(g *scalingplan.Group) { g.Suspended = []string{"AZRebalance"} }, []scalingplan.Instance{i1, i3}, "", ""},
		"a zone is full":            {func(g *scalingplan.Group) { g.Avoid = []scalingplan.Place{{"s2", ""}} }, []scalingplan.Instance{i1}, "Launch s1", ""},
		"deleted":                   {func(g *scalingplan.Group) { g.Deleting, g.HoldsTermination = true, true }, []scalingplan.Instance{i1, i2}, "End i-1, End i-2", "the deletion of its group"},
		"refreshed":                 {func(g *scalingplan.Group) { g.Refresh = &scalingplan.Refresh{MinHealthy: 90, MaxHealthy: 100} }, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Outdated = true }), with(i2, func(i *scalingplan.Instance) { i.Outdated = true })}, "End i-1, Launch s1", "in response to an instance refresh"},
		"launched first":            {func(g *scalingplan.Group) { g.Refresh = &scalingplan.Refresh{MinHealthy: 100, MaxHealthy: 150} }, []scalingplan.Instance{with(i1, func(i *scalingplan.Instance) { i.Outdated = true }), with(i2, func(i *scalingplan.Instance) { i.Outdated = true })}, "Launch s1", ""},
		"not warm yet": {func(g *scalingplan.Group) {
			g.Refresh = &scalingplan.Refresh{MinHealthy: 90, MaxHealthy: 100, Warmup: 2 * time.Hour}
		}, []scalingplan.Instance{i1, with(i2, func(i *scalingplan.Instance) { i.Outdated = true })}, "", ""},
	} {
		g := two()
		if test.change != nil {
			test.change(&g)
		}
		actions := scalingplan.Next(g, test.all, start)
		if got := shown(actions); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		} else if len(actions) > 0 && !strings.Contains(actions[0].Cause, test.cause) {
			t.Errorf("%s: cause %q, want %q", name, actions[0].Cause, test.cause)
		}
	}
}

func TestSpot(t *testing.T) {
	g := two()
	g.Desired, g.OnDemandBase, g.OnDemandPercent = 4, 1, 50
	var spots []bool
	for _, a := range scalingplan.Next(g, nil, start) {
		spots = append(spots, a.Spot)
	}
	if len(spots) != 4 || spots[0] || spots[1] || !spots[2] || spots[3] && spots[2] == spots[1] {
		t.Errorf("spot instances: %v", spots)
	}
}

func TestWake(t *testing.T) {
	i := inService("i-1", "s1", "a")
	i.Actions = []v1alpha1.LifecycleAction{
		{Deadline: metav1.NewTime(start.Add(time.Hour)), Last: metav1.NewTime(start.Add(time.Minute))},
		{Deadline: metav1.NewTime(start.Add(time.Second)), Last: metav1.NewTime(start.Add(time.Minute)), Result: v1alpha1.LifecycleContinue},
	}
	if got := scalingplan.Wake([]scalingplan.Instance{i}); !got.Equal(start.Add(time.Minute)) {
		t.Errorf("%v", got)
	}
	if got := scalingplan.Wake(nil); !got.IsZero() {
		t.Errorf("%v", got)
	}
}

func TestRun(t *testing.T) {
	n := func(v int32) *int32 { return &v }
	at := func(d time.Duration) *metav1.Time { return new(metav1.NewTime(start.Add(d))) }
	before := scalingplan.Sizes{Min: 1, Max: 4, Desired: 2}
	for name, test := range map[string]struct {
		action    v1alpha1.ScheduledAction
		suspended bool
		want      scalingplan.Sizes
		left      bool
		next      time.Time
		says      string // cause or problem
	}{
		"not yet":       {v1alpha1.ScheduledAction{StartTime: at(time.Minute), DesiredCapacity: n(3), Done: *at(-time.Hour)}, false, before, true, start.Add(time.Minute), ""},
		"once":          {v1alpha1.ScheduledAction{StartTime: at(-time.Second), DesiredCapacity: n(3), Done: *at(-time.Hour)}, false, scalingplan.Sizes{Min: 1, Max: 4, Desired: 3}, false, time.Time{}, "scheduled action update of AutoScalingGroup constraints to min: 1, max: 4, desired: 3 changing the desired capacity from 2 to 3."},
		"done":          {v1alpha1.ScheduledAction{StartTime: at(-time.Hour), DesiredCapacity: n(3), Done: *at(-time.Hour)}, false, before, false, time.Time{}, ""},
		"each hour":     {v1alpha1.ScheduledAction{Recurrence: "0 * * * *", MinSize: n(3), Done: *at(-time.Minute)}, false, scalingplan.Sizes{Min: 3, Max: 4, Desired: 3}, true, start.Add(time.Hour), "min: 3"},
		"suspended":     {v1alpha1.ScheduledAction{Recurrence: "0 * * * *", MinSize: n(3), Done: *at(-time.Minute)}, true, before, true, start.Add(time.Hour), ""},
		"from a time":   {v1alpha1.ScheduledAction{Recurrence: "0 * * * *", StartTime: at(90 * time.Minute), MinSize: n(3), Done: *at(-time.Minute)}, false, before, true, start.Add(2 * time.Hour), ""},
		"the last time": {v1alpha1.ScheduledAction{Recurrence: "0 * * * *", EndTime: at(time.Minute), MinSize: n(3), Done: *at(-time.Minute)}, false, scalingplan.Sizes{Min: 3, Max: 4, Desired: 3}, false, time.Time{}, ""},
		"cannot be":     {v1alpha1.ScheduledAction{Name: "x", Recurrence: "0 * * * *", MinSize: n(9), Done: *at(-time.Minute)}, false, before, true, start.Add(time.Hour), "the scheduled action x changes nothing: Min bound, 9, must be less than or equal to max bound, 4"},
	} {
		out := scalingplan.Run(before, scalingplan.MaxCapacity, []v1alpha1.ScheduledAction{test.action}, test.suspended, func(string) *time.Location { return time.UTC }, start)
		if out.Sizes != test.want || (len(out.Actions) > 0) != test.left || !out.Next.Equal(test.next) || !strings.Contains(out.Cause+strings.Join(out.Problems, ""), test.says) {
			t.Errorf("%s: %+v", name, out)
		}
	}
}
