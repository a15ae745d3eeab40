// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
)

// refuse has a cluster run on as it was.
func refuse(c *v1alpha1.Cluster) {
	c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: readiness.ReasonChangeRefused, Message: "it did not serve", ObservedGeneration: c.Generation}}
}

// An upgrade that was refused can be asked for again: the version is set back once.
func TestAFailedUpgradeIsTakenBack(t *testing.T) {
	t.Parallel()
	u, is := upgradeOf("1.37")
	c := is.cluster
	c.Spec.Version = "1.36"
	w := newWorld(t, c, u)
	for range 2 { // the change, and when it was made
		if err := w.step("u1"); err != nil {
			t.Fatal(err)
		}
	}
	w.get(c)
	refuse(c)
	if err := w.api.Status().Update(t.Context(), c); err != nil || c.Spec.Version != "1.37" {
		t.Fatalf("%v, %s", err, c.Spec.Version)
	}
	if err := w.step("u1"); err != nil {
		t.Fatal(err)
	}
	w.get(u)
	if w.get(c); u.Status.Phase != v1alpha1.UpdateFailed || c.Spec.Version != "1.37" {
		t.Fatalf("%+v, %s", u.Status, c.Spec.Version)
	}
	if err := w.step("u1"); err != nil {
		t.Fatal(err)
	}
	if w.get(c); c.Spec.Version != "1.36" || c.Annotations[v1alpha1.AnnotationUpdate] != "" {
		t.Fatalf("%s, %v", c.Spec.Version, c.Annotations)
	}
	// Somebody asks for it by kubectl, and is refused: that is not the update's.
	c.Spec.Version = "1.37"
	if err := w.api.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := w.step("u1"); err != nil {
		t.Fatal(err)
	}
	if w.get(c); c.Spec.Version != "1.37" {
		t.Errorf("it was set back to %s", c.Spec.Version)
	}
}

func TestWhatIsKept(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*v1alpha1.Cluster){
		"it is Ready":              func(c *v1alpha1.Cluster) { c.Status.Conditions = newCluster().Status.Conditions },
		"the refusal is earlier":   func(c *v1alpha1.Cluster) { c.Generation++ },
		"changed by another":       func(c *v1alpha1.Cluster) { c.Annotations[v1alpha1.AnnotationUpdate] = "u2" },
		"asks for another version": func(c *v1alpha1.Cluster) { c.Spec.Version = "1.36" },
		"has never run":            func(c *v1alpha1.Cluster) { c.Status.Version = "" },
		"runs the version":         func(c *v1alpha1.Cluster) { c.Status.Version = "v1.37.2" },
		"nothing is known of it":   func(c *v1alpha1.Cluster) { c.Status.Conditions = nil },
		"":                         func(*v1alpha1.Cluster) {},
	} {
		u, is := upgradeOf("1.37")
		is.cluster.Annotations = map[string]string{v1alpha1.AnnotationUpdate: "u1"}
		refuse(is.cluster)
		want := ""
		if name == "" {
			want = "1.36"
		}
		if change(is.cluster); keeps(u, is.cluster) != want {
			t.Errorf("%s: it keeps %q", name, keeps(u, is.cluster))
		}
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

// Settings that were refused are set back, so that the next update is not refused for their sake; settings of a cluster
// that took them, or asks for others by now, stay.
func TestRefusedSettingsAreTakenBack(t *testing.T) {
	t.Parallel()
	gates := v1alpha1.FeatureGates{"Nope": true}
	for name, c := range map[string]struct {
		meanwhile func(*v1alpha1.Cluster)
		phase     v1alpha1.UpdatePhase
		want      v1alpha1.FeatureGates
		level     int32
	}{
		"refused":                {refuse, v1alpha1.UpdateFailed, v1alpha1.FeatureGates{"Old": true}, 2},
		"taken":                  {func(*v1alpha1.Cluster) {}, v1alpha1.UpdateSuccessful, gates, 4},
		"not heard of in time":   {func(*v1alpha1.Cluster) {}, v1alpha1.UpdateFailed, gates, 4},
		"changed by kubectl":     {func(c *v1alpha1.Cluster) { c.Spec.FeatureGates = v1alpha1.FeatureGates{"X": true}; refuse(c) }, v1alpha1.UpdateFailed, v1alpha1.FeatureGates{"X": true}, 4},
		"changed by another one": {func(c *v1alpha1.Cluster) { refuse(c); c.Annotations[v1alpha1.AnnotationUpdate] = "u2" }, v1alpha1.UpdateFailed, gates, 4},
	} {
		u, is := upgradeOf("1.37")
		u.Spec.Type, u.Spec.Change = v1alpha1.UpdateComponentConfig, v1alpha1.UpdateChange{Components: &v1alpha1.UpdateComponents{
			FeatureGates: &gates, Scheduler: &v1alpha1.SchedulerSettings{LogLevel: new(int32(4))},
		}}
		cluster := is.cluster
		cluster.Spec.FeatureGates, cluster.Spec.Scheduler.LogLevel = v1alpha1.FeatureGates{"Old": true}, new(int32(2))
		changeCluster(cluster, u.Name, u.Spec.Change)
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, v1alpha1.AnnotationUpdate, u.Name)
		c.meanwhile(cluster)
		u.Status.Phase = c.phase
		w := newWorld(t, cluster, u)
		if err := w.step("u1"); err != nil {
			t.Fatal(err)
		}
		if w.get(cluster); !maps.Equal(cluster.Spec.FeatureGates, c.want) || *cluster.Spec.Scheduler.LogLevel != c.level {
			t.Errorf("%s: %v, %d", name, cluster.Spec.FeatureGates, *cluster.Spec.Scheduler.LogLevel)
		}
	}
}
