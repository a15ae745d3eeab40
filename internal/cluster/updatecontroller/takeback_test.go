// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
)

// refuse has a cluster run on as it was.
func refuse(c *v1alpha1.Cluster) {
	c.Status.ObservedGeneration = c.Generation
	c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: readiness.ReasonChangeRefused, Message: "it did not serve", ObservedGeneration: c.Generation}}
}

// running is a world with an update whose change was made.
func running(t *testing.T, change v1alpha1.UpdateChange, prepare func(*v1alpha1.Cluster)) (*world, *v1alpha1.Update, *v1alpha1.Cluster) {
	t.Helper()
	u, is := upgradeOf("1.37")
	c := is.cluster
	c.Spec.Version = "1.36"
	prepare(c)
	if u.Spec.Change = change; change.Components != nil {
		u.Spec.Type = v1alpha1.UpdateComponentConfig
	}
	w := newWorld(t, c, u)
	w.steps(2) // the change, and when it was made
	w.get(c)
	c.Generation = 2 // as an API server does
	w.put(c)
	return w, u, c
}

// steps are looks at the update u1, each by a service that has just been started.
func (w *world) steps(n int) {
	w.t.Helper()
	for range n {
		if err := w.step("u1"); err != nil && !errors.Is(err, errKilled) {
			w.t.Fatal(err)
		}
	}
}

// put writes a cluster with its status, not counted as the service's write.
func (w *world) put(c *v1alpha1.Cluster) {
	w.t.Helper()
	status := c.Status.DeepCopy()
	if err := w.api.Update(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
	c.Status = *status
	if err := w.api.Status().Update(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
}

var upgrade = v1alpha1.UpdateChange{Version: "1.37"}

func unchanged(*v1alpha1.Cluster) {}

// An upgrade that was refused can be asked for again: the version is set back once, before the update says that it failed.
// A service that is killed at any write of it is followed by a service that ends the update likewise.
func TestAFailedUpgradeIsTakenBack(t *testing.T) {
	t.Parallel()
	for kill := range 5 {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d, after: %v", kill, after), func(t *testing.T) {
				t.Parallel()
				w, u, c := running(t, upgrade, unchanged)
				if refuse(c); c.Spec.Version != "1.37" {
					t.Fatal(c.Spec.Version)
				}
				w.put(c)
				if kill > 0 && after {
					w.after = w.writes + kill
				} else if kill > 0 {
					w.before = w.writes + kill
				}
				for range 5 {
					w.steps(1)
					w.get(u)
					w.get(c)
					if u.Status.Phase == v1alpha1.UpdateSuccessful || u.Status.Phase == v1alpha1.UpdateFailed && c.Spec.Version != "1.36" {
						t.Fatalf("%s, and version %s is asked for", u.Status.Phase, c.Spec.Version)
					}
					if c.Spec.Version == "1.36" { // the cluster takes that
						c.Status.Conditions = newCluster().Status.Conditions
						c.Status.Conditions[0].ObservedGeneration, c.Status.ObservedGeneration = c.Generation, c.Generation
						w.put(c)
					}
				}
				if u.Status.Phase != v1alpha1.UpdateFailed || u.Status.Errors[0].ErrorMessage != "it did not serve" || len(c.Annotations) > 0 {
					t.Fatalf("%+v, %v", u.Status, c.Annotations)
				}
				// Somebody asks for it by kubectl, and is refused: that is not the update's.
				c.Spec.Version = "1.37"
				refuse(c)
				w.put(c)
				w.steps(2)
				if w.get(c); c.Spec.Version != "1.37" {
					t.Errorf("it was set back to %s", c.Spec.Version)
				}
			})
		}
	}
}

// Where the version of before is not allowed any more, the update fails all the same, and does not try for ever.
func TestSettingBackIsRefused(t *testing.T) {
	t.Parallel()
	w, u, c := running(t, upgrade, unchanged)
	refuse(c)
	w.put(c)
	w.refuse = apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("Cluster").GroupKind(), "blue", nil)
	w.steps(1)
	w.get(u)
	if w.get(c); u.Status.Phase != v1alpha1.UpdateFailed || c.Spec.Version != "1.37" {
		t.Errorf("%+v, %s", u.Status, c.Spec.Version)
	}
}

// An update that is queued behind an update that fails finds the cluster as it was before that.
func TestTheNextUpdateFindsNothingOfAFailedOne(t *testing.T) {
	t.Parallel()
	w, _, c := running(t, upgrade, unchanged)
	next := newUpdate("u2", v1alpha1.UpdateChange{DeletionProtection: new(true)})
	next.CreationTimestamp = metav1.NewTime(start.Add(time.Second))
	if err := w.api.Create(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	refuse(c)
	w.put(c)
	for range 6 {
		for _, name := range []string{"u2", "u1"} {
			if err := w.step(name); err != nil {
				t.Fatal(err)
			}
			if w.get(c); c.Spec.DeletionProtection && c.Spec.Version != "1.36" {
				t.Fatalf("the next change was made while version %s was asked for", c.Spec.Version)
			}
		}
	}
	if w.get(c); !c.Spec.DeletionProtection || c.Spec.Version != "1.36" || c.Annotations[v1alpha1.AnnotationUpdate] != "u2" {
		t.Errorf("%+v, %v", c.Spec, c.Annotations)
	}
}

// An upgrade ends by what becomes of the cluster meanwhile.
func TestHowAnUpgradeEnds(t *testing.T) {
	t.Parallel()
	is := func(reason string, generation int64) func(*v1alpha1.Cluster) {
		return func(c *v1alpha1.Cluster) {
			c.Generation, c.Status.ObservedGeneration = generation, generation
			c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: "x", ObservedGeneration: generation}}
		}
	}
	upgraded := func(c *v1alpha1.Cluster) { c.Status.Version = "v1.37.2" }
	both := func(all ...func(*v1alpha1.Cluster)) func(*v1alpha1.Cluster) {
		return func(c *v1alpha1.Cluster) {
			for _, change := range all {
				change(c)
			}
		}
	}
	for name, c := range map[string]struct {
		meanwhile func(*v1alpha1.Cluster)
		passes    time.Duration
		phase     v1alpha1.UpdatePhase
		version   string
	}{
		"refused":                         {is(readiness.ReasonChangeRefused, 2), 0, v1alpha1.UpdateFailed, "1.36"},
		"another's change is refused":     {is(readiness.ReasonChangeRefused, 3), 0, v1alpha1.UpdateInProgress, "1.37"},
		"another's, once it was upgraded": {both(upgraded, is(readiness.ReasonChangeRefused, 3)), 0, v1alpha1.UpdateSuccessful, "1.37"},
		"and is not mended in time":       {is(readiness.ReasonChangeRefused, 3), patience, v1alpha1.UpdateFailed, "1.36"},
		"no effect in time":               {is("Starting", 2), patience, v1alpha1.UpdateFailed, "1.36"},
		"not all of its effects in time":  {both(upgraded, is("Starting", 2)), patience, v1alpha1.UpdateFailed, "1.37"},
		"has never run":                   {both(func(c *v1alpha1.Cluster) { c.Status.Version = "" }, is("Starting", 2)), patience, v1alpha1.UpdateFailed, "1.37"},
		"asked back by kubectl":           {both(func(c *v1alpha1.Cluster) { c.Spec.Version = "1.36" }, is("Starting", 3)), 0, v1alpha1.UpdateFailed, "1.36"},
		"changed by another update since": {both(func(c *v1alpha1.Cluster) { c.Annotations[v1alpha1.AnnotationUpdate] = "u2" }, is(readiness.ReasonChangeRefused, 3)), 0, v1alpha1.UpdateFailed, "1.37"},
		"goes on":                         {is("Starting", 2), 0, v1alpha1.UpdateInProgress, "1.37"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, u, cluster := running(t, upgrade, unchanged)
			c.meanwhile(cluster)
			w.put(cluster)
			w.now = w.now.Add(c.passes)
			w.steps(2)
			w.get(u)
			if w.get(cluster); u.Status.Phase != c.phase || cluster.Spec.Version != c.version {
				t.Errorf("%+v, version %s", u.Status, cluster.Spec.Version)
			}
		})
	}
}

// Force is of one upgrade: it ends with its update, and the force of another stays.
func TestForceEnds(t *testing.T) {
	t.Parallel()
	for by, left := range map[string]string{"u1": "", "u2": "1.37"} {
		u, is := upgradeOf("1.37")
		u.Spec.Change.Force, u.Status.Phase = true, v1alpha1.UpdateSuccessful
		c := is.cluster
		c.Spec.Version, c.Annotations = "1.37", map[string]string{v1alpha1.AnnotationUpdate: by, v1alpha1.AnnotationForceVersion: "1.37"}
		w := newWorld(t, c, u)
		if err := w.step("u1"); err != nil {
			t.Fatal(err)
		}
		if w.get(c); c.Annotations[v1alpha1.AnnotationForceVersion] != left || c.Annotations[v1alpha1.AnnotationUpdate] != by || c.Spec.Version != "1.37" {
			t.Errorf("changed by %s: %s, %v", by, c.Spec.Version, c.Annotations)
		}
	}
}

// Settings of an update that fails are set back, so that the next update is not refused for their sake; settings that
// were taken, or changed by somebody else, stay.
func TestFailedSettingsAreTakenBack(t *testing.T) {
	t.Parallel()
	gates, old, others := v1alpha1.FeatureGates{"Nope": true}, v1alpha1.FeatureGates{"Old": true}, v1alpha1.FeatureGates{"X": true}
	for name, c := range map[string]struct {
		meanwhile func(*v1alpha1.Cluster)
		passes    time.Duration
		phase     v1alpha1.UpdatePhase
		gates     v1alpha1.FeatureGates
		scheduler int32
		manager   int32 // is not the update's
	}{
		"refused":           {refuse, 0, v1alpha1.UpdateFailed, old, 2, 0},
		"no effect in time": {func(c *v1alpha1.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionFalse }, patience, v1alpha1.UpdateFailed, old, 2, 0},
		"taken": {func(c *v1alpha1.Cluster) {
			c.Status.ObservedGeneration, c.Status.Conditions[0].ObservedGeneration = 2, 2
		}, 0, v1alpha1.UpdateSuccessful, gates, 4, 0},
		"gates changed by kubectl":     {func(c *v1alpha1.Cluster) { c.Spec.FeatureGates = others; refuse(c) }, 0, v1alpha1.UpdateFailed, others, 2, 0},
		"another setting by kubectl":   {func(c *v1alpha1.Cluster) { c.Spec.ControllerManager.LogLevel = new(int32(7)); refuse(c) }, 0, v1alpha1.UpdateFailed, old, 2, 7},
		"by another update":            {func(c *v1alpha1.Cluster) { refuse(c); c.Annotations[v1alpha1.AnnotationUpdate] = "u2" }, 0, v1alpha1.UpdateFailed, gates, 4, 0},
		"what was before is not known": {func(c *v1alpha1.Cluster) { refuse(c); c.Annotations[v1alpha1.AnnotationSettingsBefore] = "{" }, 0, v1alpha1.UpdateFailed, gates, 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := v1alpha1.UpdateChange{Components: &v1alpha1.UpdateComponents{FeatureGates: &gates, Scheduler: &v1alpha1.SchedulerSettings{LogLevel: new(int32(4))}}}
			w, u, cluster := running(t, change, func(c *v1alpha1.Cluster) { c.Spec.FeatureGates, c.Spec.Scheduler.LogLevel = old, new(int32(2)) })
			c.meanwhile(cluster)
			w.put(cluster)
			w.now = w.now.Add(c.passes)
			w.steps(3)
			w.get(u)
			w.get(cluster)
			manager := int32(0)
			if cluster.Spec.ControllerManager.LogLevel != nil {
				manager = *cluster.Spec.ControllerManager.LogLevel
			}
			if u.Status.Phase != c.phase || !maps.Equal(cluster.Spec.FeatureGates, c.gates) || *cluster.Spec.Scheduler.LogLevel != c.scheduler || manager != c.manager {
				t.Errorf("%+v: %v, %d, %d", u.Status, cluster.Spec.FeatureGates, *cluster.Spec.Scheduler.LogLevel, manager)
			}
		})
	}
}
