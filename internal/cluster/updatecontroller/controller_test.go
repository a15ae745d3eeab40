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
	"muster.dev/muster/internal/plane/readiness"
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

// A service that is killed at any write, before it or after it, is followed by one that ends the update, and the change
// is made once.
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

// The note of the last node stays with an update that has ended, when its machine is long gone.
func TestAnUpdateSaysThatTheLastNodeDoesNotWait(t *testing.T) {
	t.Parallel()
	u, g, m := newUpdate("u1", v1alpha1.UpdateChange{Scaling: &v1alpha1.UpdateScaling{DesiredSize: new(int32(0))}}), newGroup(0, 0), &leaving("2 pods are left; " + readiness.LastNode)[0]
	m.DeletionTimestamp, m.Finalizers = nil, []string{v1alpha1.FinalizerMachine}
	m.Labels = map[string]string{v1alpha1.LabelCluster: g.Namespace, v1alpha1.LabelNodeGroup: g.Name}
	other := m.DeepCopy() // of another cluster
	other.Name, other.Labels[v1alpha1.LabelCluster] = "i-0", "green"
	w := newWorld(t, newCluster(), g, u, m, other)
	for _, o := range []client.Object{m, other} {
		if err := w.api.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		if err := w.step("u1"); err != nil {
			t.Fatal(err)
		}
	}
	if w.get(u); u.Status.Phase != v1alpha1.UpdateSuccessful || u.Status.Message != "i-1: "+readiness.LastNode {
		t.Errorf("%+v", u.Status)
	}
}
