// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/podstatus"
)

// A pod that somebody removes by force while its status is written is gone: the watch, which is faster than the answer to the
// write, tells of it once. A pod that were kept would have its address and its share of the node for ever.
func TestAPodThatGoesWhileItsStatusIsWritten(t *testing.T) {
	const name = "ip-10-0-0-1.ec2.internal"
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid-of-web", ResourceVersion: "10"},
		Spec:       corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: "web"}}},
	}
	p := newPods(nil)
	defer p.due.ShutDown()
	api := fake.NewClientset(pod)
	api.PrependReactor("update", "pods", func(action kubetesting.Action) (bool, runtime.Object, error) {
		written := action.(kubetesting.UpdateAction).GetObject().(*corev1.Pod).DeepCopy()
		written.ResourceVersion, written.Spec = "11", pod.Spec
		if err := p.Delete(written); err != nil {
			t.Error(err)
		}
		return true, written, nil
	})
	runner := &podRunner{record: machine.Record{PrivateDNSName: name}, core: api.CoreV1(), log: slog.New(slog.DiscardHandler)}
	detach := p.attach(runner)
	if err := p.Add(pod); err != nil {
		t.Fatal(err)
	}
	if err := p.do(t.Context(), runner, podstatus.Action{Pod: pod, Status: &corev1.PodStatus{Phase: corev1.PodRunning}}); err != nil {
		t.Fatal(err)
	}
	if _, left := p.of(name); len(left) > 0 {
		t.Errorf("the node still runs %s", left[0].Name)
	}
	detach()
	if len(p.nodes) > 0 {
		t.Errorf("%d nodes are remembered", len(p.nodes))
	}
}

// The watch may tell late what was before a pod went: the node does not run the pod again, and asks once for its removal.
func TestAPodThatTheWatchTellsOfLate(t *testing.T) {
	const name = "ip-10-0-0-1.ec2.internal"
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid-of-web", ResourceVersion: "10"},
		Spec:       corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: "web"}}},
	}
	late := pod.DeepCopy()
	late.ResourceVersion = "11"
	for what, end := range map[string]func(*pods) error{
		"deleted":           func(p *pods) error { return p.Delete(late) },
		"not in a new list": func(p *pods) error { return p.Replace(nil, "12") },
	} {
		p := newPods(nil)
		defer p.due.ShutDown()
		runner := &podRunner{record: machine.Record{PrivateDNSName: name}, core: fake.NewClientset(pod).CoreV1(), log: slog.New(slog.DiscardHandler)}
		detach := p.attach(runner)
		if err := p.Add(pod); err != nil {
			t.Fatal(err)
		}
		if err := p.do(t.Context(), runner, podstatus.Action{Pod: pod}); err != nil {
			t.Fatal(err)
		}
		if err := p.Update(late); err != nil {
			t.Fatal(err)
		}
		if _, left := p.of(name); len(left) > 0 {
			t.Errorf("%s: the node runs %s again", what, left[0].Name)
		}
		if err := end(p); err != nil {
			t.Fatal(err)
		}
		detach()
		if len(p.nodes) > 0 {
			t.Errorf("%s: %d nodes are remembered", what, len(p.nodes))
		}
	}
}
