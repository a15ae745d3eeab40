// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ofReplicaSet has a pod belong to a ReplicaSet.
func ofReplicaSet(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "uid-of-web", Controller: new(true)}}
}

// kubelet has the pods on machines run, or fail as a kubelet has those fail that it does not admit.
func (w *testWorld) kubelet(admits bool) {
	w.t.Helper()
	var all corev1.PodList
	if err := w.cluster.List(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	for i := range all.Items {
		p := &all.Items[i]
		if p.Spec.NodeName == "" || p.Status.Phase != "" {
			continue
		}
		p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "SysctlForbidden", Message: `Pod was rejected: forbidden sysctl: "net.core.somaxconn" not allowlisted`}
		if admits {
			p.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "c"}}}
		}
		if err := w.cluster.Status().Update(w.t.Context(), p); err != nil {
			w.t.Fatal(err)
		}
	}
}

// A ReplicaSet whose pods the kubelet refuses makes another each time. They have a few machines in ten minutes, one at a
// time, and say why they wait.
func TestTheKubeletRefuses(t *testing.T) {
	w := newWorld(t)
	w.settle()
	made, most, pods, said := map[string]bool{}, 0, 0, ""
	for second := 0; second < 600; second += 2 {
		w.now = noon.Add(time.Duration(second) * time.Second)
		last := fmt.Sprint("p", pods)
		if pods == 0 || w.pod(last).Status.Phase == corev1.PodFailed {
			pods++
			last = fmt.Sprint("p", pods)
			w.run(last, "uid-of-"+last, ofReplicaSet)
		}
		for n := max(1, pods-1); n <= pods; n++ {
			if err := w.ofPod(fmt.Sprint("p", n)); err != nil {
				t.Fatal(err)
			}
		}
		machines := w.machines()
		most = max(most, len(machines))
		for _, m := range machines {
			made[m.Name] = true
		}
		w.launched()
		w.kubelet(false)
		if says := why(w.pod(last)); strings.Contains(says, "refused it") {
			said = says
		}
		for len(w.events.Events) > 0 {
			<-w.events.Events
		}
	}
	if len(made) > 8 || most > 2 {
		t.Errorf("in ten minutes %d machines were made, up to %d at once", len(made), most)
	}
	if !strings.Contains(said, "of the same ReplicaSet, refused it: SysctlForbidden Pod was rejected") {
		t.Errorf("the pod that waits says %q", said)
	}
}

// A pod that runs ends the pauses of its controller, and a pod of another controller never waits. A machine whose pod
// failed after it ran stays, as on EKS.
func TestPauses(t *testing.T) {
	w := newWorld(t)
	w.settle()
	bind := func(name string, change func(*corev1.Pod)) {
		t.Helper()
		w.run(name, "uid-of-"+name, change)
		w.settle()
		w.launched()
		w.settle()
		if w.pod(name).Spec.NodeName == "" {
			t.Fatalf("pod %s is not bound: %s", name, why(w.pod(name)))
		}
	}
	bind("a", ofReplicaSet)
	w.kubelet(false)
	w.settle()
	bind("other", nil)
	w.run("b", "uid-of-b", ofReplicaSet)
	w.settle()
	if says := why(w.pod("b")); !strings.Contains(says, "until 12:00:10") {
		t.Errorf("the next pod says %q", says)
	}
	w.now = noon.Add(firstPause)
	w.settle()
	w.launched()
	w.settle()
	w.kubelet(true)
	w.settle()
	bind("c", ofReplicaSet)
	w.kubelet(true)
	failed := w.pod("c")
	failed.Status.Phase = corev1.PodFailed
	if err := w.cluster.Status().Update(t.Context(), failed); err != nil {
		t.Fatal(err)
	}
	before := len(w.machines())
	w.settle()
	if after := len(w.machines()); after != before {
		t.Errorf("of %d machines %d are left, and the pod said what it has to say on one of them", before, after)
	}
}
