// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/readiness"
)

var (
	errKilled = errors.New("killed")
	start     = time.Unix(1800000000, 0)
)

func newCluster() *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "blue", Namespace: "blue", UID: "c1", Generation: 1}}
	c.Spec.Name, c.Spec.AccessConfig.AuthenticationMode = "blue", v1alpha1.AuthenticationConfigMap
	c.Status.ObservedGeneration, c.Status.AuthenticationMode = 1, v1alpha1.AuthenticationConfigMap
	c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Healthy", Message: "the API server answers", ObservedGeneration: 1}}
	return c
}

func newGroup(desired, ready int32) *v1alpha1.NodeGroup {
	g := &v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "blue", UID: "g1", Generation: 1}}
	g.Spec.Name, g.Spec.ScalingConfig = "web", v1alpha1.ScalingConfig{MaxSize: 9, DesiredSize: desired}
	g.Status = v1alpha1.NodeGroupStatus{Replicas: ready, ReadyReplicas: ready, UpdatedReplicas: ready, ObservedGeneration: 1}
	status := metav1.ConditionTrue
	if ready != desired {
		status = metav1.ConditionFalse
	}
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: "Joining", Message: "machines join", ObservedGeneration: 1}}
	return g
}

func newAddon() *v1alpha1.Addon {
	a := &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: "coredns", Namespace: "blue", UID: "a1", Generation: 1}}
	a.Spec.AddonName, a.Status.ObservedGeneration = "coredns", 1
	return a
}

func newUpdate(name string, change v1alpha1.UpdateChange) *v1alpha1.Update {
	u := &v1alpha1.Update{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "blue", CreationTimestamp: metav1.NewTime(start)}}
	u.Spec = v1alpha1.UpdateSpec{ClusterName: "blue", TargetUID: "c1", Type: v1alpha1.UpdateDeletionProtection, Change: change}
	if change.Scaling != nil || change.Rollout != nil {
		u.Spec.NodeGroup, u.Spec.TargetUID, u.Spec.Type = "web", "g1", v1alpha1.UpdateConfig
	}
	if change.Addon != nil {
		u.Spec.Addon, u.Spec.TargetUID, u.Spec.Type = "coredns", "a1", v1alpha1.UpdateAddon
	}
	return u
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
		"group: in effect": {scale, func(u *v1alpha1.Update, f *facts) { applied(u, f); f.group = newGroup(2, 2) }, 0, decision{step: stepSucceed}},
		"group: joining":   {scale, func(u *v1alpha1.Update, f *facts) { applied(u, f); f.group = newGroup(2, 1) }, patience - 1, wait("machines join")},
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
		"begins":  {func(_ *v1alpha1.Update, g *v1alpha1.NodeGroup) { g.Status.Rollout.ID = "u0" }, wait("the rollout begins")},
		"goes on": {func(*v1alpha1.Update, *v1alpha1.NodeGroup) {}, wait("machines join")},
		"done":    {func(_ *v1alpha1.Update, g *v1alpha1.NodeGroup) { g.Status.Rollout.Outdated = 0 }, decision{step: stepSucceed}},
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

// world is a management plane whose API server may be killed before or after a write.
type world struct {
	t      *testing.T
	api    client.Client
	now    time.Time
	writes int
	before int // the number of the write before which the service is killed
	after  int
	refuse error // of a change of a target
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, now: start.Add(time.Second)}
	write := func(do func() error) error {
		w.writes++
		if w.writes == w.before {
			return errKilled
		}
		err := do()
		if w.writes == w.after {
			return errKilled
		}
		return err
	}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Cluster{}, &v1alpha1.NodeGroup{}, &v1alpha1.Update{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
				if w.refuse != nil {
					return w.refuse
				}
				return write(func() error { return c.Patch(ctx, o, patch, options...) })
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
				return write(func() error { return c.SubResource(sub).Patch(ctx, o, patch, options...) })
			},
		}).Build()
	return w
}

// step is a look of a controller that has just been started.
func (w *world) step(name string) error {
	r := &updates{api: w.api, now: func() time.Time { return w.now }}
	_, err := r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "blue", Name: name}})
	return err
}

func (w *world) get(o client.Object) {
	w.t.Helper()
	if err := w.api.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.t.Fatal(err)
	}
}

// A service that is killed at any write, before it or after it, is followed by one that ends the update, and the change is made once.
func TestKilledBetweenTheWrites(t *testing.T) {
	t.Parallel()
	for kill := 1; kill <= 4; kill++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d, after: %v", kill, after), func(t *testing.T) {
				t.Parallel()
				u, g := newUpdate("u1", v1alpha1.UpdateChange{Scaling: &v1alpha1.UpdateScaling{DesiredSize: new(int32(3))}}), newGroup(1, 1)
				w := newWorld(t, newCluster(), g, u)
				if after {
					w.after = kill
				} else {
					w.before = kill
				}
				killed, settled, changed := 0, false, false
				for range 10 {
					if err := w.step("u1"); errors.Is(err, errKilled) {
						killed++
					} else if err != nil {
						t.Fatal(err)
					}
					w.get(g)
					w.get(u)
					// Somebody else sets another size once the change is made: it is not set back.
					if g.Spec.ScalingConfig.DesiredSize == 3 && !changed {
						changed = true
						g.Spec.ScalingConfig.DesiredSize = 2
						if err := w.api.Update(t.Context(), g); err != nil {
							t.Fatal(err)
						}
					}
					if u.Status.AppliedAt != nil && u.Status.Message != "" && !settled { // it is seen to wait, then the machines are there
						settled = true
						g.Status = newGroup(2, 2).Status
						if err := w.api.Status().Update(t.Context(), g); err != nil {
							t.Fatal(err)
						}
					}
				}
				if killed != 1 || g.Spec.ScalingConfig.DesiredSize != 2 || u.Status.Phase != v1alpha1.UpdateSuccessful || u.Status.FinishedAt == nil {
					t.Errorf("killed %d times: %d machines, %+v", killed, g.Spec.ScalingConfig.DesiredSize, u.Status)
				}
			})
		}
	}
}

func TestChangesOfAClusterComeInTurn(t *testing.T) {
	t.Parallel()
	all := v1alpha1.UpdateChange{
		AuthenticationMode: v1alpha1.AuthenticationAPI, DeletionProtection: new(true), SupportType: "STANDARD",
		Logging: &v1alpha1.UpdateLoggingTypes{Types: []v1alpha1.LoggingType{"api"}}, Endpoint: &v1alpha1.ClusterEKSEndpoint{PrivateAccess: new(true)},
	}
	first, second, c := newUpdate("u2", all), newUpdate("u1", v1alpha1.UpdateChange{DeletionProtection: new(false)}), newCluster()
	second.CreationTimestamp = metav1.NewTime(start.Add(time.Second))
	w := newWorld(t, c, first, second)
	turn := func(name string) {
		for range 4 {
			if err := w.step(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	turn("u1")
	if w.get(second); second.Status.Message != "update u2 of cluster blue comes first" || second.Status.AppliedAt != nil {
		t.Errorf("%+v", second.Status)
	}
	turn("u2")
	w.get(first)
	if w.get(c); first.Status.Message == "" {
		t.Errorf("it does not wait for the authenticator: %+v", first.Status)
	}
	c.Status.AuthenticationMode = v1alpha1.AuthenticationAPI
	if err := w.api.Status().Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	turn("u2")
	w.get(first)
	if w.get(c); first.Status.Phase != v1alpha1.UpdateSuccessful || !c.Spec.DeletionProtection || c.Spec.AccessConfig.AuthenticationMode != v1alpha1.AuthenticationAPI ||
		c.Spec.EKS.SupportType != "STANDARD" || len(c.Spec.EKS.LoggingTypes) != 1 || c.Spec.EKS.Endpoint.PrivateAccess == nil || c.Spec.EKS.Endpoint.PublicAccess != nil {
		t.Errorf("%+v, %+v", first.Status, c.Spec)
	}
	turn("u1")
	w.get(second)
	if w.get(c); second.Status.Phase != v1alpha1.UpdateSuccessful || c.Spec.DeletionProtection {
		t.Errorf("%+v, %+v", second.Status, c.Spec)
	}
}

func TestAChangeOfAnAddon(t *testing.T) {
	t.Parallel()
	a, u := newAddon(), newUpdate("u1", v1alpha1.UpdateChange{Addon: &v1alpha1.UpdateAddonSettings{ConfigurationValues: new("{}"), ServiceAccountRoleARN: new("")}})
	a.Spec.Version, a.Spec.ServiceAccountRoleARN, a.Spec.ResolveConflicts = "v1.15.0-eksbuild.1", "arn:r", v1alpha1.ConflictsOverwrite
	// An older update of the cluster is none of the add-on.
	w := newWorld(t, newCluster(), a, u, newUpdate("u0", v1alpha1.UpdateChange{DeletionProtection: new(true)}))
	if err := w.step("u1"); err != nil {
		t.Fatal(err)
	}
	w.get(a)
	want := v1alpha1.AddonSpec{AddonName: "coredns", Version: "v1.15.0-eksbuild.1", ConfigurationValues: "{}", ResolveConflicts: v1alpha1.ConflictsNone}
	if diff := cmp.Diff(want, a.Spec); diff != "" || a.Annotations[v1alpha1.AnnotationUpdate] != "u1" {
		t.Errorf("%v (-want +got):\n%s", a.Annotations, diff)
	}
}

func TestAChangeThatIsRefused(t *testing.T) {
	t.Parallel()
	u := newUpdate("u1", v1alpha1.UpdateChange{Scaling: &v1alpha1.UpdateScaling{DesiredSize: new(int32(30))}})
	w := newWorld(t, newCluster(), newGroup(1, 1), u)
	w.refuse = apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("NodeGroup").GroupKind(), "web", nil)
	if err := w.step("u1"); err != nil {
		t.Fatal(err)
	}
	w.get(u)
	want := []v1alpha1.UpdateError{{ErrorCode: codeNotPermitted, ErrorMessage: w.refuse.Error(), ResourceIDs: []string{"web"}}}
	if diff := cmp.Diff(want, u.Status.Errors); diff != "" || u.Status.Phase != v1alpha1.UpdateFailed {
		t.Errorf("%s, %s", u.Status.Phase, diff)
	}
}

func TestOldUpdatesGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range keptUpdates + 3 {
		u := newUpdate(fmt.Sprintf("u%03d", i), v1alpha1.UpdateChange{})
		u.CreationTimestamp = metav1.NewTime(start.Add(time.Duration(i) * time.Second))
		if u.Status.Phase = v1alpha1.UpdateSuccessful; i == 0 {
			u.Status.Phase = v1alpha1.UpdateInProgress
		}
		if err := w.api.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.step("u102"); err != nil {
		t.Fatal(err)
	}
	var left v1alpha1.UpdateList
	if err := w.api.List(t.Context(), &left); err != nil || len(left.Items) != keptUpdates || left.Items[0].Name != "u000" || left.Items[1].Name != "u004" {
		t.Errorf("%d are left, %s first; %v", len(left.Items), left.Items[0].Name, err)
	}
}
