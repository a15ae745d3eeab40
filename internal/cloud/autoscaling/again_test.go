// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

// A request about an instance that comes again, or after another one, before the controller has carried out the first: the
// group is made smaller once, and nobody's request is forgotten for another one's.
func TestRequestsAboutOneInstance(t *testing.T) {
	const (
		one       = "i-0000000000000001a"
		enter     = "EnterStandby&AutoScalingGroupName=own&ShouldDecrementDesiredCapacity=true&InstanceIds.member.1=" + one
		detach    = "DetachInstances&AutoScalingGroupName=own&ShouldDecrementDesiredCapacity=true&InstanceIds.member.1=" + one
		terminate = "TerminateInstanceInAutoScalingGroup&ShouldDecrementDesiredCapacity=true&InstanceId=" + one
		unhealthy = "SetInstanceHealth&HealthStatus=Unhealthy&InstanceId=" + one
	)
	for name, c := range map[string]struct {
		first, second string
		status        int
		says          string
		wish          v1alpha1.Wish
	}{
		"standby, again":        {enter, enter, 200, "shrinking the capacity from 2 to 1", v1alpha1.WishStandby},
		"detached, again":       {detach, detach, 200, "shrinking the capacity from 2 to 1", v1alpha1.WishDetached},
		"terminated, again":     {terminate, terminate, 200, "shrinking the capacity from 2 to 1", v1alpha1.WishTerminated},
		"standby, terminated":   {enter, terminate, 200, "", v1alpha1.WishTerminated},
		"standby, detached":     {enter, detach, 200, "", v1alpha1.WishDetached},
		"standby, unhealthy":    {enter, unhealthy, 200, "", v1alpha1.WishStandby},
		"detached, terminated":  {detach, terminate, 400, "is being detached", v1alpha1.WishDetached},
		"detached, standby":     {detach, enter, 400, "it is to be Detached already", v1alpha1.WishDetached},
		"detached, unhealthy":   {detach, unhealthy, 200, "", v1alpha1.WishDetached},
		"terminated, standby":   {terminate, enter, 400, "it is to be Terminated already", v1alpha1.WishTerminated},
		"terminated, detached":  {terminate, detach, 400, "it is to be Terminated already", v1alpha1.WishTerminated},
		"terminated, unhealthy": {terminate, unhealthy, 200, "", v1alpha1.WishTerminated},
		"unhealthy, terminated": {unhealthy, terminate, 200, "shrinking the capacity from 2 to 1", v1alpha1.WishTerminated},
	} {
		t.Run(name, func(t *testing.T) {
			w := ownWorld(t)
			w.ask("UpdateAutoScalingGroup&AutoScalingGroupName=own&MinSize=0", 200)
			w.ask(c.first, 200)
			w.ask(c.second, c.status, c.says)
			g := w.own()
			if len(g.Spec.Wishes) != 1 || g.Spec.Wishes[0].Wish != c.wish || g.Spec.DesiredCapacity != 1 {
				t.Errorf("wishes %+v, desired capacity %d", g.Spec.Wishes, g.Spec.DesiredCapacity)
			}
		})
	}
}

// Wishes to attach are dropped when they are fulfilled, or cannot be: a group has room for 1000 wishes.
func TestWishesToAttachAreDropped(t *testing.T) {
	w := ownWorld(t)
	g := w.own()
	for id, wish := range map[string]v1alpha1.Wish{
		"i-0000000000000001a": v1alpha1.WishAttached, // has been attached
		"i-0000000000000001f": v1alpha1.WishAttached, // has ended before
		instanceA:             v1alpha1.WishAttached, // is a member of another group
		"i-0000000000000001b": v1alpha1.WishStandby,
	} {
		g.Spec.Wishes = append(g.Spec.Wishes, v1alpha1.InstanceWish{InstanceID: id, Wish: wish, Cause: "asked"})
	}
	if err := w.api.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	w.ask("AttachInstances&AutoScalingGroupName=own&InstanceIds.member.1="+instanceC, 200)
	left := map[string]v1alpha1.Wish{}
	for _, wish := range w.own().Spec.Wishes {
		left[wish.InstanceID] = wish.Wish
	}
	if len(left) != 2 || left[instanceC] != v1alpha1.WishAttached || left["i-0000000000000001b"] != v1alpha1.WishStandby {
		t.Errorf("wishes %v", left)
	}
}
