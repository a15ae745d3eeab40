// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/karpenter"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/platform/release"
)

// backTo is a rollback to the oldest release, and its cluster of the release after, whose control plane runs Karpenter.
func backTo() (u *v1alpha1.Update, c *v1alpha1.Cluster, older, newer release.Release) {
	for _, r := range release.All() {
		if r.Distance(release.Default()) == -1 {
			older = r
		}
	}
	newer = release.Default()
	u, c = newUpdate("u1", v1alpha1.UpdateChange{Version: older.Minor(), RollbackTimeoutMinutes: new(int32(120))}), newCluster()
	u.Spec.Type = v1alpha1.UpdateRollback
	c.Spec.Version, c.Status.Version, c.Spec.Compute = newer.Minor(), newer.Version, &v1alpha1.ClusterCompute{Enabled: true}
	return u, c, older, newer
}

func launched(id, class, cluster string, of release.Release) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: id}}
	m.Spec.ClusterName, m.Spec.ImageID, m.Spec.Tags = cluster, ami.OfRelease(of), v1alpha1.Tags{}
	if class != "" {
		m.Spec.Tags[karpenter.LabelNodeClass] = v1alpha1.TagValue(class)
	}
	return m
}

func TestGoesBack(t *testing.T) {
	t.Parallel()
	_, c, older, newer := backTo()
	for name, test := range map[string]struct {
		m    *v1alpha1.Machine
		off  bool
		want bool
	}{
		"its own, newer":            {launched("i-1", "default", "blue", newer), false, true},
		"its own, of the minor":     {launched("i-1", "default", "blue", older), false, false},
		"of a class of people":      {launched("i-1", "own", "blue", newer), false, false},
		"of a node group":           {launched("i-1", "", "blue", newer), false, false},
		"of another cluster":        {launched("i-1", "default", "green", newer), false, false},
		"Karpenter is switched off": {launched("i-1", "default", "blue", newer), true, false},
		"of no image that is known": {&v1alpha1.Machine{Spec: v1alpha1.MachineSpec{ClusterName: "blue"}}, false, false},
	} {
		spec := *c.Spec.DeepCopy()
		spec.Compute.Enabled = !test.off
		if got := GoesBack(spec, test.m, older); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestMachinesFirst(t *testing.T) {
	t.Parallel()
	u, c, older, _ := backTo()
	begun := func(u *v1alpha1.Update, _ *facts) {
		u.Status.Steps = []v1alpha1.UpdateStep{{Name: v1alpha1.UpdateStepChange, StartedAt: metav1.NewTime(start)}}
	}
	with := func(names ...string) func(*v1alpha1.Update, *facts) {
		return func(u *v1alpha1.Update, is *facts) { begun(u, is); is.newer = names }
	}
	told := wait("Karpenter is told to launch machines of %s before the control plane goes back", older.Minor())
	const late = "the control plane stays as it is: after %v, %s still newer than %s: %s"
	for name, test := range map[string]struct {
		change func(*v1alpha1.Update, *facts)
		after  time.Duration
		want   decision
	}{
		"it has just come":       {nil, 0, told},
		"its turn has just come": {begun, settling - 1, told},
		"no machine":             {begun, settling, decision{step: stepApply}},
		"a machine":              {with("i-1"), time.Hour, wait("Karpenter replaces machines by machines of %s before the control plane goes back; 1 machine is still newer: i-1", older.Minor())},
		"many machines":          {with("i-1", "i-2", "i-3", "i-4", "i-5"), 0, wait("Karpenter replaces machines by machines of %s before the control plane goes back; 5 machines are still newer: i-1, i-2, i-3 and 2 more", older.Minor())},
		"too late":               {with("i-1"), 2 * time.Hour, fail(codeEviction, late, 2*time.Hour, "1 machine is", older.Minor(), "i-1")},
		"the default time": {func(u *v1alpha1.Update, is *facts) {
			with("i-1", "i-2")(u, is)
			u.Spec.Change.RollbackTimeoutMinutes = nil
		}, 12 * time.Hour, fail(codeEviction, late, 12*time.Hour, "2 machines are", older.Minor(), "i-1, i-2")},
		"none is left at the last moment": {begun, 3 * time.Hour, decision{step: stepApply}},
		"cancelled": {func(u *v1alpha1.Update, is *facts) {
			with("i-1")(u, is)
			u.Annotations = map[string]string{v1alpha1.AnnotationCancel: "true"}
		}, 0, decision{step: stepCancel}},
		"without Karpenter": {func(u *v1alpha1.Update, is *facts) { with("i-1")(u, is); is.cluster.Spec.Compute = nil }, 0, decision{step: stepApply}},
		"an upgrade":        {func(u *v1alpha1.Update, is *facts) { with("i-1")(u, is); u.Spec.Type = v1alpha1.UpdateVersion }, 0, decision{step: stepApply}},
		"another one first": {func(u *v1alpha1.Update, is *facts) { with("i-1")(u, is); is.older = "u0" }, 0, wait("update u0 of cluster blue comes first")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, is := u.DeepCopy(), facts{cluster: c.DeepCopy()}
			if test.change != nil {
				test.change(u, &is)
			}
			if diff := cmp.Diff(test.want, next(u, is, start.Add(test.after)), cmp.AllowUnexported(decision{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGoingBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(u, other *v1alpha1.Update)
		goes   bool
	}{
		"in progress":      {func(_, _ *v1alpha1.Update) {}, true},
		"the plane's turn": {func(u, _ *v1alpha1.Update) { u.Status.AppliedAt = new(metav1.NewTime(start)) }, true},
		"ended":            {func(u, _ *v1alpha1.Update) { u.Status.Phase = v1alpha1.UpdateFailed }, false},
		"cancelled":        {func(u, _ *v1alpha1.Update) { u.Annotations = map[string]string{v1alpha1.AnnotationCancel: "true"} }, false},
		"cancelled when it was too late": {func(u, _ *v1alpha1.Update) {
			u.Annotations, u.Status.AppliedAt = map[string]string{v1alpha1.AnnotationCancel: "true"}, new(metav1.NewTime(start))
		}, true},
		"an upgrade":          {func(u, _ *v1alpha1.Update) { u.Spec.Type = v1alpha1.UpdateVersion }, false},
		"another comes first": {func(_, other *v1alpha1.Update) { other.Status.Phase = v1alpha1.UpdateInProgress }, false},
		"a node group's is not": {func(_, other *v1alpha1.Update) {
			other.Status.Phase, other.Spec.NodeGroup = v1alpha1.UpdateInProgress, "web"
		}, true},
	} {
		u, _, older, _ := backTo()
		other := newUpdate("u0", v1alpha1.UpdateChange{DeletionProtection: new(true)})
		other.Status.Phase = v1alpha1.UpdateSuccessful
		test.change(u, other)
		want := ""
		if test.goes {
			want = older.Minor()
		}
		if got := GoingBack([]v1alpha1.Update{*other, *u}); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := GoingBack(nil); got != "" {
		t.Errorf("of no update: %q", got)
	}
}

// The cluster is changed once, after the last of its machines that are newer is gone, whenever the service is killed.
func TestARollbackWaitsForItsMachines(t *testing.T) {
	t.Parallel()
	for kill := 1; kill <= 5; kill++ {
		t.Run(fmt.Sprint(kill), func(t *testing.T) {
			t.Parallel()
			u, c, older, newer := backTo()
			old, others := launched("i-1", "default", "blue", newer), launched("i-2", "default", "green", newer)
			w := newWorld(t, c, u, old, others, launched("i-3", "default", "blue", older))
			w.after = kill
			for turn := range 12 {
				if err := w.step("u1"); err != nil && !strings.Contains(err.Error(), errKilled.Error()) {
					t.Fatal(err)
				}
				w.now = w.now.Add(5 * time.Second)
				w.get(c)
				w.get(u)
				if gone := turn >= 6; !gone && (c.Spec.Version != newer.Minor() || GoingBack([]v1alpha1.Update{*u}) != older.Minor()) {
					t.Fatalf("in turn %d the cluster is to be of %s: %+v", turn, c.Spec.Version, u.Status)
				}
				if turn == 5 {
					if err := w.api.Delete(t.Context(), old); err != nil {
						t.Fatal(err)
					}
				}
			}
			if c.Spec.Version != older.Minor() || c.Annotations[v1alpha1.AnnotationUpdate] != "u1" || u.Status.AppliedAt == nil {
				t.Errorf("the cluster is to be of %s: %+v", c.Spec.Version, u.Status)
			}
		})
	}
}
