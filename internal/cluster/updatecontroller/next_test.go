// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
)

// leaving is a machine that is being deleted, with what its condition Drained says, unless that is "".
func leaving(drained string) []v1alpha1.Machine {
	m := v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-1", DeletionTimestamp: new(metav1.NewTime(start))}, Status: v1alpha1.MachineStatus{NodeName: "ip-1"}}
	if drained != "" {
		m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDrained, Message: drained}}
	}
	return []v1alpha1.Machine{m}
}

func TestNext(t *testing.T) {
	t.Parallel()
	protect := v1alpha1.UpdateChange{DeletionProtection: new(true)}
	scale := v1alpha1.UpdateChange{Scaling: &v1alpha1.UpdateScaling{DesiredSize: new(int32(2))}}
	mode := v1alpha1.UpdateChange{AuthenticationMode: v1alpha1.AuthenticationAPI}
	applied := func(u *v1alpha1.Update, _ *facts) { u.Status.AppliedAt = new(metav1.NewTime(start)) }
	moded := func(u *v1alpha1.Update, f *facts) {
		applied(u, f)
		f.cluster.Spec.AccessConfig.AuthenticationMode = v1alpha1.AuthenticationAPI
	}
	values := v1alpha1.UpdateChange{Addon: &v1alpha1.UpdateAddonSettings{ConfigurationValues: new("{}")}}
	addon := func(phase v1alpha1.AddonPhase, code string) func(*v1alpha1.Update, *facts) {
		return func(u *v1alpha1.Update, f *facts) {
			applied(u, f)
			if f.addon.Status.Phase = phase; code != "" {
				f.addon.Status.Issues = []v1alpha1.AddonIssue{{Code: code, Message: "1 of 2 pods"}}
			}
		}
	}
	upgraded := func(is string) func(*v1alpha1.Update, *facts) {
		return func(u *v1alpha1.Update, f *facts) {
			applied(u, f)
			f.cluster.Spec.Version, f.cluster.Status.Version = "1.37", is
		}
	}
	refused := func(u *v1alpha1.Update, f *facts) {
		applied(u, f)
		ready := &f.cluster.Status.Conditions[0]
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, readiness.ReasonChangeRefused, "it runs on as it was"
	}
	for name, c := range map[string]struct {
		change v1alpha1.UpdateChange
		with   func(*v1alpha1.Update, *facts)
		after  time.Duration
		want   decision
	}{
		"new":          {protect, nil, 0, decision{step: stepApply}},
		"ended":        {protect, func(u *v1alpha1.Update, _ *facts) { u.Status.Phase = v1alpha1.UpdateFailed }, 0, decision{}},
		"an older one": {protect, func(_ *v1alpha1.Update, f *facts) { f.older = "u0" }, 0, wait("update u0 of cluster blue comes first")},
		"an older one, and changed": {protect, func(u *v1alpha1.Update, f *facts) {
			f.older, f.cluster.Annotations = "u0", map[string]string{v1alpha1.AnnotationUpdate: u.Name}
		}, 0, decision{step: stepNote}},
		"changed by another": {protect, func(_ *v1alpha1.Update, f *facts) {
			f.cluster.Annotations = map[string]string{v1alpha1.AnnotationUpdate: "u0"}
		}, 0, decision{step: stepApply}},
		"no cluster":                     {protect, func(_ *v1alpha1.Update, f *facts) { f.cluster = nil }, 0, fail(codeNotPermitted, "cluster blue is gone")},
		"another cluster":                {protect, func(_ *v1alpha1.Update, f *facts) { f.cluster.UID = "c2" }, 0, fail(codeNotPermitted, "cluster blue is gone")},
		"no node group":                  {scale, func(_ *v1alpha1.Update, f *facts) { f.group = nil }, 0, fail(codeNotPermitted, "node group web is gone")},
		"deleted":                        {scale, func(_ *v1alpha1.Update, f *facts) { f.group.DeletionTimestamp = new(metav1.NewTime(start)) }, 0, fail(codeNotPermitted, "node group web is being deleted")},
		"cluster: in effect":             {protect, applied, 0, decision{step: stepSucceed}},
		"cluster: not looked at":         {protect, func(u *v1alpha1.Update, f *facts) { applied(u, f); f.cluster.Generation = 2 }, 0, wait("the control plane takes the change: the API server answers")},
		"cluster: nobody heard":          {protect, func(u *v1alpha1.Update, f *facts) { applied(u, f); f.cluster.Status.Conditions = nil }, patience, fail(codeUnreachable, "the change has had no effect for 20m0s: nothing has been heard of it yet")},
		"mode: the authenticator starts": {mode, moded, patience - 1, wait("the authenticator runs in mode CONFIG_MAP, and is to be started in mode API")},
		"mode: never heard of":           {mode, func(u *v1alpha1.Update, f *facts) { moded(u, f); f.cluster.Status.AuthenticationMode = "" }, 0, wait("the authenticator runs in mode unknown, and is to be started in mode API")},
		"mode: refused":                  {mode, refused, 0, fail(codeNotPermitted, "it runs on as it was")},
		"version: in effect":             {v1alpha1.UpdateChange{Version: "1.37"}, upgraded("v1.37.2"), 0, decision{step: stepSucceed}},
		"version: the one before serves": {v1alpha1.UpdateChange{Version: "1.37"}, upgraded("v1.36.4"), 0, wait("the API server is of version v1.36.4, and is to be of 1.37")},
		"mode: refused before":           {mode, func(u *v1alpha1.Update, f *facts) { refused(u, f); f.cluster.Generation = 2 }, 0, wait("the control plane takes the change: it runs on as it was")},
		"mode: in effect": {mode, func(u *v1alpha1.Update, f *facts) {
			moded(u, f)
			f.cluster.Status.AuthenticationMode = v1alpha1.AuthenticationAPI
		}, 0, decision{step: stepSucceed}},
		"security groups: in effect": {protect, func(u *v1alpha1.Update, f *facts) {
			applied(u, f)
			f.cluster.Spec.SecurityGroupIDs, f.cluster.Status.ClusterSecurityGroupID, f.cluster.Status.SecurityGroupIDs = []string{"sg-1", "sg-2"}, "sg-0", []string{"sg-2", "sg-0", "sg-1"}
		}, 0, decision{step: stepSucceed}},
		"security groups: not yet": {protect, func(u *v1alpha1.Update, f *facts) {
			applied(u, f)
			f.cluster.Spec.SecurityGroupIDs, f.cluster.Status.ClusterSecurityGroupID, f.cluster.Status.SecurityGroupIDs = []string{"sg-1"}, "sg-0", []string{"sg-0", "sg-2"}
		}, 0, wait("the API server's addresses are in the security groups [sg-0 sg-2], and are to be in [sg-1] beside the cluster's own")},
		"group: in effect":  {scale, func(u *v1alpha1.Update, f *facts) { applied(u, f); f.group = newGroup(2, 2) }, 0, decision{step: stepSucceed}},
		"group: of none":    {scale, func(u *v1alpha1.Update, f *facts) { applied(u, f); f.group, f.leaving = newGroup(0, 0), leaving("") }, 0, wait("machine i-1 begins to drain")},
		"group: never seen": {scale, func(u *v1alpha1.Update, f *facts) { applied(u, f); f.group, f.leaving = newGroup(0, 0), leaving("") }, patience, decision{step: stepSucceed}},
		"group: not the last node": {scale, func(u *v1alpha1.Update, f *facts) {
			applied(u, f)
			f.group, f.leaving = newGroup(0, 0), leaving("2 pods are left")
		}, 0, decision{step: stepSucceed}},
		"group: the last node": {scale, func(u *v1alpha1.Update, f *facts) {
			applied(u, f)
			f.group, f.leaving = newGroup(0, 0), leaving("2 pods are left; "+readiness.LastNode)
		}, 0, decision{step: stepSucceed, message: "i-1: " + readiness.LastNode}},
		"group: simulated machines go": {scale, func(u *v1alpha1.Update, f *facts) {
			applied(u, f)
			f.group, f.leaving = newGroup(0, 0), leaving("")
			f.leaving[0].Spec.Provider = v1alpha1.ProviderSimulated
		}, 0, decision{step: stepSucceed}},
		"group: joining": {scale, func(u *v1alpha1.Update, f *facts) { applied(u, f); f.group = newGroup(2, 1) }, patience - 1, wait("machines join")},
		"group: one leaves": {scale, func(u *v1alpha1.Update, f *facts) {
			applied(u, f)
			f.group = newGroup(2, 2)
			f.group.Status.Replicas = 3
		}, 0, wait("machines join")},
		"group: not all are labelled": {scale, func(u *v1alpha1.Update, f *facts) {
			applied(u, f)
			f.group = newGroup(2, 2)
			f.group.Status.UpdatedReplicas = 1
		}, 0, wait("1 of 2 nodes have the group's labels and taints")},
		"group: one is stopped": {scale, func(u *v1alpha1.Update, f *facts) {
			applied(u, f)
			f.group = newGroup(2, 2)
			f.group.Status.ReadyReplicas = 1
		}, 0, decision{step: stepSucceed}},
		"group: after a night": {scale, func(u *v1alpha1.Update, f *facts) {
			applied(u, f)
			f.group, f.began = newGroup(2, 1), start.Add(8*time.Hour)
		}, 8*time.Hour + patience - 1, wait("machines join")},
		"group: never":        {scale, func(u *v1alpha1.Update, f *facts) { applied(u, f); f.group = newGroup(2, 1) }, patience, fail(codeNodeCreation, "1 of 2 machines are Ready after 20m0s: machines join")},
		"add-on: gone":        {values, func(_ *v1alpha1.Update, f *facts) { f.addon = nil }, 0, fail(codeNotPermitted, "add-on coredns is gone")},
		"add-on: in effect":   {values, addon(v1alpha1.AddonActive, ""), 0, decision{step: stepSucceed}},
		"add-on: on its way":  {values, addon(v1alpha1.AddonUpdating, "InsufficientNumberOfReplicas"), 0, wait("1 of 2 pods")},
		"add-on: never":       {values, addon(v1alpha1.AddonUpdating, "InsufficientNumberOfReplicas"), patience, fail("InsufficientNumberOfReplicas", "the change has had no effect for 20m0s: 1 of 2 pods")},
		"add-on: refused":     {values, addon(v1alpha1.AddonUpdateFailed, "ConfigurationConflict"), 0, fail("ConfigurationConflict", "1 of 2 pods")},
		"add-on: unhealthy":   {values, addon(v1alpha1.AddonDegraded, "InsufficientNumberOfReplicas"), 0, fail("InsufficientNumberOfReplicas", "1 of 2 pods")},
		"add-on: not reached": {values, addon(v1alpha1.AddonDegraded, codeUnreachable), 0, wait("1 of 2 pods")},
		"add-on: not looked at": {values, func(u *v1alpha1.Update, f *facts) {
			addon(v1alpha1.AddonActive, "")(u, f)
			f.addon.Generation, f.addon.Status.Applied = 2, "x"
		}, 0, wait("the controller of add-ons has not looked at it yet")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, f := newUpdate("u1", c.change), facts{cluster: newCluster(), group: newGroup(1, 1), addon: newAddon()}
			if c.with != nil {
				c.with(u, &f)
			}
			if diff := cmp.Diff(c.want, next(u, f, start.Add(c.after)), cmp.AllowUnexported(decision{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNextOfARollout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		with func(u *v1alpha1.Update, g *v1alpha1.NodeGroup)
		want decision
	}{
		"new": {func(u *v1alpha1.Update, _ *v1alpha1.NodeGroup) { u.Status.AppliedAt = nil }, decision{step: stepApply}},
		"cancelled before": {func(u *v1alpha1.Update, _ *v1alpha1.NodeGroup) {
			u.Status.AppliedAt = nil
			u.Annotations = map[string]string{v1alpha1.AnnotationCancel: "true"}
		}, decision{step: stepCancel}},
		"begins": {func(_ *v1alpha1.Update, g *v1alpha1.NodeGroup) { g.Status.Rollout.ID, g.Generation = "u0", 2 }, wait("the rollout begins")},
		"does not begin": {func(u *v1alpha1.Update, g *v1alpha1.NodeGroup) {
			g.Status.Rollout.ID = "u0"
			u.Status.AppliedAt = new(metav1.NewTime(start.Add(1)))
		}, wait("machines join")},
		"never begins": {func(_ *v1alpha1.Update, g *v1alpha1.NodeGroup) { g.Status.Rollout.ID = "u0" }, fail(codeNodeCreation, "the rollout has not begun after 20m0s: machines join")},
		"cancelled before it begins": {func(u *v1alpha1.Update, g *v1alpha1.NodeGroup) {
			g.Status.Rollout.ID, u.Annotations = "u0", map[string]string{v1alpha1.AnnotationCancel: "true"}
		}, decision{step: stepStop}},
		"one is lost at the end": {func(_ *v1alpha1.Update, g *v1alpha1.NodeGroup) {
			g.Status = newGroup(2, 1).Status
			g.Status.Rollout = &v1alpha1.NodeGroupRolloutStatus{ID: "u1", Phase: v1alpha1.RolloutScaleDown, StepTime: metav1.NewTime(start.Add(1))}
		}, wait("machines join")},
		"and does not come back": {func(_ *v1alpha1.Update, g *v1alpha1.NodeGroup) {
			g.Status = newGroup(2, 1).Status
			g.Status.Rollout = &v1alpha1.NodeGroupRolloutStatus{ID: "u1", Phase: v1alpha1.RolloutScaleDown, StepTime: metav1.NewTime(start)}
		}, fail(codeNodeCreation, "1 of 2 machines are Ready after 20m0s: machines join")},
		"goes on": {func(*v1alpha1.Update, *v1alpha1.NodeGroup) {}, wait("machines join")},
		"done":    {func(_ *v1alpha1.Update, g *v1alpha1.NodeGroup) { g.Status.Rollout.Phase = v1alpha1.RolloutScaleDown }, decision{step: stepSucceed}},
		"given up": {func(_ *v1alpha1.Update, g *v1alpha1.NodeGroup) {
			g.Status.Rollout.Code, g.Status.Rollout.Message = "PodEvictionFailure", "why"
		}, fail("PodEvictionFailure", "why")},
		"cancelled": {func(u *v1alpha1.Update, _ *v1alpha1.NodeGroup) {
			u.Annotations = map[string]string{v1alpha1.AnnotationCancel: "true"}
		}, decision{step: stepStop}},
		"cancelled and stopped": {func(u *v1alpha1.Update, g *v1alpha1.NodeGroup) {
			u.Annotations = map[string]string{v1alpha1.AnnotationCancel: "true"}
			g.Spec.Rollout.Stopped = true
		}, decision{step: stepCancel}},
		"stopped by somebody": {func(_ *v1alpha1.Update, g *v1alpha1.NodeGroup) { g.Spec.Rollout.Stopped = true }, fail(codeNotPermitted, "the rollout of node group web was stopped")},
		"taken over":          {func(_ *v1alpha1.Update, g *v1alpha1.NodeGroup) { g.Spec.Rollout.ID = "other" }, fail(codeNotPermitted, "somebody else has changed the rollout of node group web")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, g := newUpdate("u1", v1alpha1.UpdateChange{Rollout: &v1alpha1.UpdateRollout{}}), newGroup(2, 2)
			u.Status.AppliedAt = new(metav1.NewTime(start))
			g.Spec.Rollout, g.Status.Rollout = &v1alpha1.NodeGroupRollout{ID: "u1"}, &v1alpha1.NodeGroupRolloutStatus{ID: "u1", Outdated: 1}
			c.with(u, g)
			if diff := cmp.Diff(c.want, next(u, facts{cluster: newCluster(), group: g}, start.Add(patience)), cmp.AllowUnexported(decision{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A rollout that is cancelled stops in the node group before the update says so, whenever the service is killed.
func TestARolloutIsCancelled(t *testing.T) {
	t.Parallel()
	for kill := 1; kill <= 3; kill++ {
		u, g := newUpdate("u1", v1alpha1.UpdateChange{Rollout: &v1alpha1.UpdateRollout{Force: true}}), newGroup(2, 2)
		w := newWorld(t, newCluster(), g, u)
		w.after = kill
		for range 8 {
			if err := w.step("u1"); err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			w.get(g)
			if w.get(u); u.Status.Phase == v1alpha1.UpdateCancelled && (g.Spec.Rollout == nil || !g.Spec.Rollout.Stopped || !g.Spec.Rollout.Force || g.Spec.Rollout.ID != "u1") {
				t.Errorf("killed at %d: %+v", kill, g.Spec.Rollout)
			}
			if u.Status.AppliedAt != nil && g.Status.Rollout == nil {
				g.Status.Rollout = &v1alpha1.NodeGroupRolloutStatus{ID: "u1", Outdated: 1}
				if err := w.api.Status().Update(t.Context(), g); err != nil {
					t.Fatal(err)
				}
				u.Annotations = map[string]string{v1alpha1.AnnotationCancel: "true"}
				if err := w.api.Update(t.Context(), u); err != nil {
					t.Fatal(err)
				}
			}
		}
		if u.Status.Phase != v1alpha1.UpdateCancelled {
			t.Errorf("killed at %d: %+v", kill, u.Status)
		}
	}
}
