// SPDX-License-Identifier: Apache-2.0

package podstatus_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"muster.dev/muster/internal/machine/podstatus"
)

// A pod that is deleted runs until its grace period is over, Ready as before; then it is said to have ended, and then
// removed, which is one write each.
func TestGracePeriod(t *testing.T) {
	w := &world{node: node(), pods: []*corev1.Pod{newPod("a")}}
	if writes, _ := w.settle(t, start); writes != 1 {
		t.Errorf("to run takes %d writes, want 1", writes)
	}
	began := w.pod(t, "a").Status.ContainerStatuses[0].State.Running.StartedAt
	deleted(30 * time.Second)(w.pods[0])
	ends := w.pods[0].DeletionTimestamp.Time
	writes, again := w.settle(t, ends.Add(-time.Millisecond))
	if got := say(w.pod(t, "a")); writes != 0 || !again.Equal(ends) || got != "Running, 10.244.3.2, Ready=True, web runs" {
		t.Errorf("in its grace period it is %q after %d writes, to be looked at again at %v; want %v", got, writes, again, ends)
	}
	actions, _ := podstatus.Next(w.node, w.pods, ends)
	if len(actions) != 1 || actions[0].Status == nil {
		t.Fatalf("at the end of its grace period: %+v", actions)
	}
	w.pods[0] = w.pods[0].DeepCopy()
	w.pods[0].Status = *actions[0].Status
	if got := say(w.pods[0]); got != "Failed, 10.244.3.2, Ready=False PodFailed, web ended 137" {
		t.Errorf("at its end it is %q", got)
	}
	ended := w.pods[0].Status.ContainerStatuses[0].State.Terminated
	if !ended.StartedAt.Equal(&began) || !ended.FinishedAt.Time.Equal(ends) || ended.ContainerID == "" || ended.Reason != "Error" {
		t.Errorf("its container ended as %+v; it began at %v", ended, began)
	}
	if actions, _ := podstatus.Next(w.node, w.pods, ends); len(actions) != 1 || actions[0].Status != nil {
		t.Errorf("after its end: %+v, want its removal", actions)
	}
	// A finalizer keeps it, and the API server has taken the removal.
	w.pods[0].DeletionGracePeriodSeconds = new(int64(0))
	if actions, again := podstatus.Next(w.node, w.pods, ends); len(actions) != 0 || !again.IsZero() {
		t.Errorf("after its removal: %+v, %v, want nothing", actions, again)
	}
}

// Pods that were admitted stay; of new ones the oldest is admitted first, and what has ended takes no room.
func TestAdmissionOrder(t *testing.T) {
	old, young := newPod("old", requests("1", "1Gi")), newPod("young", requests("1", "1Gi"))
	old.CreationTimestamp = metav1.NewTime(start.Add(-time.Hour))
	w := &world{node: node(), pods: []*corev1.Pod{newPod("big", requests("1", "1Gi"))}}
	w.settle(t, start)
	w.pods = append(w.pods, young, old)
	w.settle(t, start)
	if said := []string{say(w.pod(t, "big")), say(w.pod(t, "old")), say(w.pod(t, "young"))}; !slices.Equal(said, []string{
		"Running, 10.244.3.2, Ready=True, web runs", "Running, 10.244.3.3, Ready=True, web runs", "Failed, OutOfcpu",
	}) {
		t.Errorf("they are %q", said)
	}
	if message := w.pod(t, "young").Status.Message; message != "Pod was rejected: Node didn't have enough resource: cpu, requested: 1000, used: 2000, capacity: 2000" {
		t.Errorf("it was refused with %q", message)
	}
	deleted(time.Second)(w.pod(t, "big"))
	w.pods = append(w.pods, newPod("next", requests("1", "1Gi")))
	w.settle(t, start.Add(time.Minute)) // big ends, and next was refused in the same look
	w.pods = append(w.pods, newPod("after", requests("1", "1Gi")))
	w.settle(t, start.Add(2*time.Minute))
	if said := say(w.pod(t, "after")); said != "Running, 10.244.3.2, Ready=True, web runs" {
		t.Errorf("a pod in the place of one that has ended is %q", said)
	}
}

// Conditions keep their time while their status stays, and those of others stay as they are.
func TestTransitions(t *testing.T) {
	pod := newPod("a", func(p *corev1.Pod) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/lit"}}
	})
	w := &world{node: node(), pods: []*corev1.Pod{pod}}
	w.settle(t, start)
	scheduled := pod.Status.Conditions[0].LastTransitionTime
	w.pods[0].Status.Conditions = append(w.pods[0].Status.Conditions, corev1.PodCondition{Type: "example.com/lit", Status: corev1.ConditionTrue, Reason: "Lit"})
	w.pods[0].Generation = 2
	later := start.Add(time.Minute)
	w.settle(t, later)
	var said []string
	for _, c := range w.pods[0].Status.Conditions {
		since := "now"
		switch {
		case c.LastTransitionTime.Equal(&scheduled):
			since = "scheduled"
		case c.LastTransitionTime.Time.Equal(start.Truncate(time.Second)):
			since = "start"
		case c.LastTransitionTime.IsZero():
			since = "never"
		}
		said = append(said, fmt.Sprintf("%s %s %s %d", c.Type, c.Status, since, c.ObservedGeneration))
	}
	if want := []string{
		"example.com/lit True never 0", "PodReadyToStartContainers True start 2", "Initialized True start 2", "Ready True now 2", "ContainersReady True start 2", "PodScheduled True scheduled 2",
	}; !slices.Equal(said, want) {
		t.Errorf("conditions are\n%q, want\n%q", said, want)
	}
	if started := w.pods[0].Status.ContainerStatuses[0].State.Running.StartedAt; !started.Time.Equal(start.Truncate(time.Second)) {
		t.Errorf("its container runs since %v", started)
	}
}

// Whatever comes: no two pods have an address, the requests of those that run fit, a pod that was told to be over stays
// so, one that is gone when its time has come is gone by one look, and a second look at the same moment has nothing to
// do.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{node: node()}
		w.node.PodRange = netip.PrefixFrom(w.node.PodRange.Addr(), rapid.IntRange(28, 31).Draw(rt, "bits"))
		now := start
		for i := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40_000).Draw(rt, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 3).Draw(rt, "do") {
			case 0, 1:
				pod := newPod(fmt.Sprint("p", i), requests(fmt.Sprint(rapid.IntRange(0, 12).Draw(rt, "cpu")*200, "m"), "1Mi"))
				pod.CreationTimestamp = metav1.NewTime(now.Truncate(time.Second))
				if rapid.Bool().Draw(rt, "once") {
					once(pod)
					annotated(fmt.Sprint(rapid.IntRange(0, 60).Draw(rt, "run"), "s"))(pod)
				}
				w.pods = append(w.pods, pod)
			case 2:
				if len(w.pods) > 0 {
					pod := rapid.SampledFrom(w.pods).Draw(rt, "pod")
					at := metav1.NewTime(now.Add(30 * time.Second).Truncate(time.Second))
					pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, new(int64(30))
				}
			}
			over := map[string]corev1.PodPhase{}
			for _, pod := range w.pods {
				if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
					over[pod.Name] = pod.Status.Phase
				}
			}
			_, again := w.settle(t, now)
			check(rt, w, now, again, over)
		}
	})
}

func check(rt *rapid.T, w *world, now, again time.Time, over map[string]corev1.PodPhase) {
	addresses := map[string]string{}
	var cpu, running int64
	for _, pod := range w.pods {
		if phase, was := over[pod.Name]; was && pod.Status.Phase != phase {
			rt.Errorf("%s was %s, and is %s", pod.Name, phase, pod.Status.Phase)
		}
		if pod.DeletionTimestamp != nil && !now.Before(pod.DeletionTimestamp.Time) {
			rt.Errorf("%s is there at %v, and was to be gone by %v", pod.Name, now, pod.DeletionTimestamp)
		}
		if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		running++
		cpu += pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		if other, taken := addresses[pod.Status.PodIP]; taken && pod.Status.PodIP != "" {
			rt.Errorf("%s and %s have the address %s", other, pod.Name, pod.Status.PodIP)
		}
		addresses[pod.Status.PodIP] = pod.Name
		if pod.DeletionTimestamp != nil && (again.IsZero() || again.After(pod.DeletionTimestamp.Time)) {
			rt.Errorf("%s ends at %v, and is looked at again at %v", pod.Name, pod.DeletionTimestamp, again)
		}
	}
	if cpu > 2000 || running > 4 {
		rt.Errorf("%d pods run, with %dm of cpu", running, cpu)
	}
	if !again.IsZero() && !again.After(now) {
		rt.Errorf("to be looked at again at %v, which is not after %v", again, now)
	}
}
