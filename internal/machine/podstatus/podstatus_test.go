// SPDX-License-Identifier: Apache-2.0

package podstatus_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/internal/machine/podstatus"
)

var start = time.Date(2026, 11, 29, 12, 0, 0, 250e6, time.UTC)

func node() podstatus.Node {
	return podstatus.Node{
		Name: "ip-172-31-0-5.ec2.internal", Address: netip.MustParseAddr("172.31.0.5"), PodRange: netip.MustParsePrefix("10.244.3.0/24"),
		Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("4"),
		},
	}
}

// newPod is a pod as the scheduler has bound it.
func newPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: types.UID("uid-" + name), Generation: 1, ResourceVersion: "1", CreationTimestamp: metav1.NewTime(start.Truncate(time.Second)),
		},
		Spec: corev1.PodSpec{NodeName: node().Name, RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "web", Image: "nginx:1"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(start.Add(-time.Minute).Truncate(time.Second))}},
		},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func requests(cpu, memory string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
}

func once(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyNever }

func annotated(value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations = map[string]string{podstatus.RunTimeAnnotation: value} }
}

func deadline(seconds int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.ActiveDeadlineSeconds = &seconds }
}

// deleted is a pod whose grace period ends some time after the start.
func deleted(after time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		at := metav1.NewTime(start.Truncate(time.Second).Add(after))
		seconds := int64(after / time.Second)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &seconds
	}
}

// world keeps pods as an API server does.
type world struct {
	node podstatus.Node
	pods []*corev1.Pod
}

// settle takes actions until none is due, and returns how many writes that took and when to look again.
func (w *world) settle(t *testing.T, now time.Time) (writes int, again time.Time) {
	t.Helper()
	for range 10 {
		var actions []podstatus.Action
		actions, again = podstatus.Next(w.node, w.pods, now)
		if len(actions) == 0 {
			return writes, again
		}
		for _, action := range actions {
			writes++
			i := slices.Index(w.pods, action.Pod)
			switch {
			case i < 0:
				t.Fatalf("an action about a pod that is not there: %+v", action.Pod)
			case action.Status != nil:
				w.pods[i] = action.Pod.DeepCopy()
				w.pods[i].Status = *action.Status
			default:
				w.pods = slices.Delete(w.pods, i, i+1)
			}
		}
	}
	t.Fatal("it never settles")
	return 0, again
}

func (w *world) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	for _, pod := range w.pods {
		if pod.Name == name {
			return pod
		}
	}
	t.Fatalf("pod %s is gone", name)
	return nil
}

// say is a pod's status in a line.
func say(pod *corev1.Pod) string {
	words := []string{string(pod.Status.Phase)}
	for _, word := range []string{pod.Status.Reason, pod.Status.PodIP} {
		if word != "" {
			words = append(words, word)
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			words = append(words, strings.TrimSpace("Ready="+string(c.Status)+" "+c.Reason))
		}
	}
	for _, cs := range append(slices.Clone(pod.Status.InitContainerStatuses), pod.Status.ContainerStatuses...) {
		switch {
		case cs.State.Running != nil:
			words = append(words, cs.Name+" runs")
		case cs.State.Terminated != nil:
			words = append(words, fmt.Sprintf("%s ended %d", cs.Name, cs.State.Terminated.ExitCode))
		default:
			words = append(words, cs.Name+" waits: "+cs.State.Waiting.Reason)
		}
	}
	return strings.Join(words, ", ")
}

func TestNext(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	for name, test := range map[string]struct {
		pod    *corev1.Pod
		change func(*podstatus.Node)
		after  time.Duration // at which the pod is looked at a second time
		want   string        // "" if it is gone by then
		again  time.Duration // 0 if it is never to be looked at again
	}{
		"runs":                     {pod: newPod("a"), want: "Running, 10.244.3.2, Ready=True, web runs"},
		"of the machine's network": {pod: newPod("a", func(p *corev1.Pod) { p.Spec.HostNetwork = true }), want: "Running, 172.31.0.5, Ready=True, web runs"},
		"init containers and sidecars": {pod: newPod("a", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "first"}, {Name: "beside", RestartPolicy: &always}, {Name: "second"}}
		}), want: "Running, 10.244.3.2, Ready=True, first ended 0, beside runs, second ended 0, web runs"},
		"readiness gate": {
			pod: newPod("a", func(p *corev1.Pod) {
				p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/lit"}}
			}),
			want: "Running, 10.244.3.2, Ready=False ReadinessGatesNotReady, web runs",
		},
		"readiness gate that is true": {pod: newPod("a", func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/lit"}}
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "example.com/lit", Status: corev1.ConditionTrue})
		}), want: "Running, 10.244.3.2, Ready=True, web runs"},
		"no address is left": {
			pod: newPod("a"), change: func(n *podstatus.Node) { n.PodRange = netip.MustParsePrefix("10.244.3.0/31") },
			want: "Pending, Ready=False ContainersNotReady, web waits: ContainerCreating",
		},
		"deleted before it ran":       {pod: newPod("a", deleted(30*time.Second)), want: ""},
		"runs for a while":            {pod: newPod("a", once, annotated("20s")), after: 10 * time.Second, want: "Running, 10.244.3.2, Ready=True, web runs", again: 20 * time.Second},
		"has run for a while":         {pod: newPod("a", once, annotated("20s")), after: 20 * time.Second, want: "Succeeded, 10.244.3.2, Ready=False PodCompleted, web ended 0"},
		"runs for a part of a second": {pod: newPod("a", once, annotated("100ms")), after: 0, want: "Succeeded, 10.244.3.2, Ready=False PodCompleted, web ended 0"},
		"runs on, as its policy says": {pod: newPod("a", annotated("20s")), after: time.Hour, want: "Running, 10.244.3.2, Ready=True, web runs"},
		"runs on, as no time is said": {pod: newPod("a", once, annotated("soon")), after: time.Hour, want: "Running, 10.244.3.2, Ready=True, web runs"},
		"deadline":                    {pod: newPod("a", deadline(60)), after: time.Minute, want: "Failed, DeadlineExceeded, 10.244.3.2, Ready=False PodFailed, web ended 137"},
		"ends before its deadline":    {pod: newPod("a", once, deadline(60), annotated("20s")), after: 2 * time.Minute, want: "Succeeded, 10.244.3.2, Ready=False PodCompleted, web ended 0"},
		"too much cpu":                {pod: newPod("a", requests("2001m", "1Mi")), want: "Failed, OutOfcpu"},
		"too much memory":             {pod: newPod("a", requests("2", "4097Mi")), want: "Failed, OutOfmemory"},
		"fits exactly":                {pod: newPod("a", requests("2", "4Gi")), want: "Running, 10.244.3.2, Ready=True, web runs"},
		"too many pods": {
			pod: newPod("a"), change: func(n *podstatus.Node) { n.Allocatable[corev1.ResourcePods] = resource.MustParse("0") },
			want: "Failed, OutOfpods",
		},
		"what the node does not have": {pod: newPod("a", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"example.com/thing": resource.MustParse("1")}
		}), want: "Running, 10.244.3.2, Ready=True, web runs"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{node: node(), pods: []*corev1.Pod{test.pod}}
			if test.change != nil {
				test.change(&w.node)
			}
			before := test.pod.DeepCopy()
			w.settle(t, start)
			if !equality.Semantic.DeepEqual(before, test.pod) {
				t.Error("the pod was changed in place")
			}
			later := start.Truncate(time.Second).Add(test.after)
			if later.Before(start) {
				later = start
			}
			_, again := w.settle(t, later)
			got := ""
			if len(w.pods) > 0 {
				got = say(w.pods[0])
			}
			if got != test.want {
				t.Errorf("it is %q, want %q", got, test.want)
			}
			if want := start.Truncate(time.Second).Add(test.again); test.again != 0 && !again.Equal(want) || test.again == 0 && !again.IsZero() {
				t.Errorf("to be looked at again at %v, want %v", again, want)
			}
		})
	}
}
