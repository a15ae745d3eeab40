// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// A deleted profile ends the pods that have a machine by it, whatever their labels say: a pod that names the scheduler by
// itself has none, and everybody who may change a pod may change them. Pods with a machine by another profile stay.
func TestDeletionWithoutLabels(t *testing.T) {
	for name, c := range map[string]struct {
		label string
		after bool // the label is changed when the pod has its machine
	}{
		"named the scheduler by itself": {"", false},
		"the label was removed":         {"", true},
		"the label names another":       {"others", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle()
			relabel := func(p *corev1.Pod) {
				if p.Labels = map[string]string{v1alpha1.LabelFargateProfile: c.label}; c.label == "" {
					p.Labels = nil
				}
			}
			w.run("a", "uid-of-a", func(p *corev1.Pod) {
				if !c.after {
					relabel(p)
				}
			})
			w.settle()
			w.launched()
			w.settle()
			if pod := w.pod("a"); pod.Spec.NodeName == "" {
				t.Fatalf("the pod is not bound: %s", why(pod))
			} else if c.after {
				relabel(pod)
				if err := w.cluster.Update(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
			}
			w.delete(w.profile())
			w.settle()
			w.launched()
			w.settle()
			if w.pod("a") != nil || len(w.machines()) != 0 || w.profile() != nil {
				t.Errorf("the pod is %v; there are %d machines, and the profile %v", w.pod("a"), len(w.machines()), w.profile())
			}
		})
	}
}

// A pod that runs on a machine by one profile stays when the profile that its label names is deleted, as does a pod that
// its owner put on a node of EC2.
func TestDeletionOfAnotherProfile(t *testing.T) {
	w := newWorld(t)
	w.settle()
	w.run("a", "uid-of-a", nil)
	w.settle()
	w.launched()
	w.settle()
	w.run("b", "uid-of-b", func(p *corev1.Pod) {
		p.Spec.NodeName = "ip-10-0-0-9.ec2.internal"
		p.Labels[v1alpha1.LabelFargateProfile] = "others"
	})
	pod := w.pod("a")
	pod.Labels[v1alpha1.LabelFargateProfile] = "others"
	if err := w.cluster.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	others := w.another()
	w.settle()
	w.delete(others)
	w.settle()
	if w.pod("a") == nil || w.pod("b") == nil || len(w.machines()) != 1 {
		t.Errorf("the pods are %v and %v, and there are %d machines", w.pod("a"), w.pod("b"), len(w.machines()))
	}
}

// another makes a second profile, which selects no pod.
func (w *testWorld) another() *v1alpha1.FargateProfile {
	w.t.Helper()
	p := &v1alpha1.FargateProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "others", UID: "uid-of-others"}, Spec: w.profile().Spec}
	p.Spec.Name, p.Spec.Selectors = "others", []v1alpha1.FargateSelector{{Namespace: "others"}}
	if err := w.management.Create(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
	return p
}
