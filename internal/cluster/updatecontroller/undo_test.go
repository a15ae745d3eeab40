// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/release"
)

// A rollout that fails is undone by another update, if that was asked for, and by one however often the service is
// killed: the group goes back to the version and the template of before.
func TestAFailedRolloutIsUndone(t *testing.T) {
	t.Parallel()
	for kill := range 7 {
		u, g := newUpdate("u1", v1alpha1.UpdateChange{Rollout: &v1alpha1.UpdateRollout{Version: "1.37", RollbackOnFailure: true, LaunchTemplate: &v1alpha1.NodeGroupLaunchTemplate{UserData: "new"}}}), newGroup(2, 2)
		g.Spec.Version, g.Spec.LaunchTemplate = "1.36", &v1alpha1.NodeGroupLaunchTemplate{UserData: "old"}
		w := newWorld(t, newCluster(), g, u)
		w.after = kill
		for turn := range 14 {
			for _, name := range []string{"u1", "u1-undo"} {
				if err := w.step(name); err != nil && !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
			}
			if w.get(g); turn == 6 {
				g.Status.Rollout = &v1alpha1.NodeGroupRolloutStatus{ID: "u1", Outdated: 1, Code: "PodEvictionFailure", Message: "a budget"}
				if err := w.api.Status().Update(t.Context(), g); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.get(u)
		if errs := u.Status.Errors; u.Status.Phase != v1alpha1.UpdateFailed || len(errs) != 1 || errs[0].ErrorMessage != "a budget; update u1-undo takes the node group back" {
			t.Errorf("killed at %d: %+v", kill, u.Status)
		}
		want := &v1alpha1.NodeGroupRollout{ID: "u1-undo", KeepCurrent: true, Before: &v1alpha1.NodeGroupBefore{Version: "1.37", LaunchTemplate: &v1alpha1.NodeGroupLaunchTemplate{UserData: "new"}}}
		if diff := cmp.Diff(want, g.Spec.Rollout); diff != "" || g.Spec.Version != "1.36" || g.Spec.LaunchTemplate.UserData != "old" {
			t.Errorf("killed at %d: %s, %+v, %s", kill, g.Spec.Version, g.Spec.LaunchTemplate, diff)
		}
		var all v1alpha1.UpdateList
		if err := w.api.List(t.Context(), &all); err != nil || len(all.Items) != 2 {
			t.Errorf("killed at %d: %d updates, %v", kill, len(all.Items), err)
		}
	}
}

// The update that undoes a failed one goes before those that were waiting already, and not after one that was made: it
// would take the group back to what that one made of it.
func TestAnUndoComesBeforeWhatWaits(t *testing.T) {
	t.Parallel()
	rollout := v1alpha1.UpdateChange{Rollout: &v1alpha1.UpdateRollout{}}
	at := func(name string, after time.Duration) *v1alpha1.Update {
		u := newUpdate(name, rollout)
		u.CreationTimestamp = metav1.NewTime(start.Add(after))
		return u
	}
	failing, waiting, undo := at("u1", 0), at("u2", time.Minute), at("u1-undo", time.Hour)
	failing.Status.AppliedAt, undo.Annotations = new(metav1.NewTime(start)), map[string]string{v1alpha1.AnnotationUndoes: "u1"}
	for name, c := range map[string]struct {
		others []*v1alpha1.Update
		want   string
	}{
		"u2 ":                  {nil, ""},
		"u2":                   {[]*v1alpha1.Update{undo}, "u1-undo"},
		"u1-undo":              {[]*v1alpha1.Update{waiting}, ""},
		"u1-undo after its u1": {[]*v1alpha1.Update{failing, waiting}, "u1"},
	} {
		u := waiting
		if strings.HasPrefix(name, "u1-undo") {
			u = undo
		}
		objects := []client.Object{newCluster(), newGroup(2, 2), u.DeepCopy()}
		for _, other := range c.others {
			objects = append(objects, other.DeepCopy())
		}
		w := newWorld(t, objects...)
		if is, err := (&updates{api: w.api}).look(t.Context(), u); err != nil || is.older != c.want {
			t.Errorf("%s waits for %q, want %q (%v)", name, is.older, c.want, err)
		}
	}
}

// A group that no update has rolled out cannot go back, and an update that was not asked to go back does not.
func TestRolloutsThatAreNotUndone(t *testing.T) {
	t.Parallel()
	u, g := newUpdate("u1", v1alpha1.UpdateChange{Rollout: &v1alpha1.UpdateRollout{Undo: true}}), newGroup(2, 2)
	g.Spec.Rollout = &v1alpha1.NodeGroupRollout{ID: "by-hand"}
	w := newWorld(t, newCluster(), g, u)
	if err := w.step("u1"); err != nil {
		t.Fatal(err)
	}
	if w.get(u); u.Status.Phase != v1alpha1.UpdateFailed || !strings.Contains(u.Status.Errors[0].ErrorMessage, "nothing is known of what node group web was of before") {
		t.Errorf("%+v", u.Status)
	}

	u, g = newUpdate("u2", v1alpha1.UpdateChange{Rollout: &v1alpha1.UpdateRollout{}}), newGroup(2, 2)
	g.Spec.Rollout, g.Status.Rollout = &v1alpha1.NodeGroupRollout{ID: "u2"}, &v1alpha1.NodeGroupRolloutStatus{ID: "u2", Code: "PodEvictionFailure", Message: "a budget"}
	g.Annotations = map[string]string{v1alpha1.AnnotationUpdate: "u2"}
	w = newWorld(t, newCluster(), g, u)
	for range 3 {
		if err := w.step("u2"); err != nil {
			t.Fatal(err)
		}
	}
	w.get(u)
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "blue", Name: "u2-undo"}, &v1alpha1.Update{}); err == nil || u.Status.Phase != v1alpha1.UpdateFailed {
		t.Errorf("%v, %+v", err, u.Status)
	}
}

// The name of an undo is the id of a rollout, which has 63 characters at most, and that of an object. It is always the same, and
// another for another update.
func TestUndoName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 62)
	names := map[string]bool{}
	for _, name := range []string{"u1", strings.Repeat("a", 58), strings.Repeat("a", 59), long, long + "b", long + "c", strings.Repeat("a", 48) + ".-x" + long, strings.Repeat("a.", 100) + "a"} {
		undo := undoName(name)
		if len(undo) > 63 || undo != undoName(name) || !strings.HasSuffix(undo, "-undo") || names[undo] {
			t.Errorf("%s is undone by %s, of %d characters", name, undo, len(undo))
		}
		if wrong := validation.IsDNS1123Subdomain(undo); len(wrong) > 0 {
			t.Errorf("%s: %v", undo, wrong)
		}
		if names[undo] = true; len(name) <= 58 && undo != name+"-undo" {
			t.Errorf("%s is undone by %s", name, undo)
		}
	}
}

// A version of which no machine can be made on this host is refused with the command that builds it, before the group asks for it;
// so is going back to one.
func TestRolloutsToAMinorThatIsNotBuilt(t *testing.T) {
	t.Parallel()
	for name, asks := range map[string]*v1alpha1.UpdateRollout{"forth": {Version: "1.37"}, "back": {Undo: true}} {
		u, g := newUpdate("u1", v1alpha1.UpdateChange{Rollout: asks}), newGroup(2, 2)
		g.Spec.Rollout = &v1alpha1.NodeGroupRollout{ID: "u0", Before: &v1alpha1.NodeGroupBefore{Version: "1.37"}}
		d := next(u, facts{cluster: newCluster(), group: g, unbuilt: func(of release.Release) string { return of.Minor() + " is not built: run make kubernetes" }}, start)
		if want := "node group web stays as it is: 1.37 is not built: run make kubernetes"; d.step != stepFail || d.code != codeNotPermitted || d.message != want {
			t.Errorf("%s: %+v", name, d)
		}
		if d := next(u, facts{cluster: newCluster(), group: g}, start); d.step != stepApply {
			t.Errorf("%s, where it is built: %+v", name, d)
		}
	}
}
