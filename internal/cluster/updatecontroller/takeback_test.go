// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
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
