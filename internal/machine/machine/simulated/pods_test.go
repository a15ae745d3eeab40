// SPDX-License-Identifier: Apache-2.0

package simulated_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/machine/machine"
)

// launchWithPods launches a machine that takes pods.
func (s *scene) launchWithPods(t *testing.T, i int) machine.Instance {
	t.Helper()
	instance, err := s.p.Launch(t.Context(), machine.LaunchRequest{ID: fmt.Sprintf("i-%017x", i), UserData: s.userData(t, token), Cluster: "Blue", SimulatePods: true})
	if err != nil {
		t.Fatal(err)
	}
	return instance
}

// runs reports what keeps a pod from being Running and Ready.
func (s *scene) runs(name string) func() string {
	return func() string {
		pod, ok := s.server.pods["default/"+name]
		if !ok {
			return "pod " + name + " is gone"
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.Status.Phase == corev1.PodRunning {
				return ""
			}
		}
		return fmt.Sprintf("pod %s is %+v", name, pod.Status)
	}
}

func (s *scene) gone(name string) func() string {
	return func() string {
		if pod, ok := s.server.pods["default/"+name]; ok {
			return fmt.Sprintf("pod %s is there: %+v", name, pod.Status)
		}
		return ""
	}
}

// asked counts requests about pods.
func (s *scene) asked() map[string]int {
	s.server.mutex.Lock()
	defer s.server.mutex.Unlock()
	counts := map[string]int{}
	for what, n := range s.server.asked {
		if strings.Contains(what, "pods") || what == "GET nodes" {
			counts[what] = n
		}
	}
	return counts
}

// Pods that are bound to a machine's node run, and those that are deleted take their grace period and go. All machines
// share one watch; a pod takes one write to run, and two to go.
func TestPods(t *testing.T) {
	s := newScene(t, time.Hour)
	defer s.simulate(t)()
	first, second := s.launchWithPods(t, 1), s.launchWithPods(t, 2)
	s.eventually(t, s.ready(2))
	s.server.mutex.Lock()
	for _, node := range s.server.nodes {
		if taints := node.Spec.Taints; len(taints) != 1 || taints[0].Key != "dedicated" {
			t.Errorf("node %s has the taints %v, want only that of its user data", node.Name, taints)
		}
	}
	s.server.mutex.Unlock()
	s.server.bind("a", first.PrivateDNSName)
	s.server.bind("b", first.PrivateDNSName)
	s.server.bind("c", second.PrivateDNSName)
	s.server.bind("elsewhere", "another-node")
	for _, name := range []string{"a", "b", "c"} {
		s.eventually(t, s.runs(name))
	}
	s.server.mutex.Lock()
	a, b, c := s.server.pods["default/a"], s.server.pods["default/b"], s.server.pods["default/c"]
	if a.Status.PodIP == b.Status.PodIP || a.Status.PodIP == c.Status.PodIP || a.Status.HostIP != first.PrivateIP.String() || c.Status.HostIP != second.PrivateIP.String() {
		t.Errorf("addresses are %s, %s and %s on %s and %s", a.Status.PodIP, b.Status.PodIP, c.Status.PodIP, a.Status.HostIP, c.Status.HostIP)
	}
	if len(a.Spec.Containers[0].Env) != 1 {
		t.Error("the spec of a pod was changed")
	}
	if phase := s.server.pods["default/elsewhere"].Status.Phase; phase != corev1.PodPending {
		t.Errorf("the pod of another node is %s", phase)
	}
	s.server.mutex.Unlock()
	if asked, want := s.asked(), map[string]int{"GET pods": 1, "GET nodes": 2, "PUT pods/status": 3}; !maps.Equal(asked, want) {
		t.Errorf("three pods on two nodes ask for %v, want %v", asked, want)
	}
	evicted := time.Now()
	s.server.evict("a", 2*time.Second)
	s.eventually(t, s.gone("a"))
	if took := time.Since(evicted); took < time.Second { // times are whole seconds
		t.Errorf("it was gone after %v", took)
	}
	if asked, want := s.asked(), map[string]int{"GET pods": 1, "GET nodes": 2, "PUT pods/status": 4, "DELETE pods": 1}; !maps.Equal(asked, want) {
		t.Errorf("one of them gone they ask for %v, want %v", asked, want)
	}
}

// A machine that was not asked to takes no pods, whoever binds them to its node.
func TestPodsOfOtherMachines(t *testing.T) {
	s := newScene(t, time.Hour)
	defer s.simulate(t)()
	with, without := s.launchWithPods(t, 1), s.launch(t, 2, token)
	s.server.bind("a", with.PrivateDNSName)
	s.server.bind("b", without.PrivateDNSName)
	s.eventually(t, s.ready(2))
	s.eventually(t, s.runs("a"))
	s.server.mutex.Lock()
	defer s.server.mutex.Unlock()
	if pod := s.server.pods["default/b"]; pod.Status.Phase != corev1.PodPending {
		t.Errorf("its pod is %+v", pod.Status)
	}
	if taints := s.server.nodes[without.PrivateDNSName].Spec.Taints; len(taints) != 2 {
		t.Errorf("its node has the taints %v", taints)
	}
}

// A simulator that is started again takes pods as they are, and does what has become due.
func TestPodsResume(t *testing.T) {
	s := newScene(t, time.Hour)
	stop := s.simulate(t)
	instance := s.launchWithPods(t, 1)
	s.server.bind("stays", instance.PrivateDNSName)
	s.server.bind("goes", instance.PrivateDNSName)
	s.eventually(t, s.runs("stays"))
	s.eventually(t, s.runs("goes"))
	s.eventually(t, s.ready(1))
	stop()
	s.server.mutex.Lock()
	before := s.server.pods["default/stays"].ResourceVersion
	s.server.mutex.Unlock()
	s.server.evict("goes", time.Second)
	s.server.bind("new", instance.PrivateDNSName)
	defer s.simulate(t)()
	s.eventually(t, s.gone("goes"))
	s.eventually(t, s.runs("new"))
	s.server.mutex.Lock()
	defer s.server.mutex.Unlock()
	if pod := s.server.pods["default/stays"]; pod.ResourceVersion != before {
		t.Errorf("the pod that stays was written again: %+v", pod.Status)
	}
}

// A stopped machine is silent about its pods, and goes on about them once it is started.
func TestPodsOfAStoppedMachine(t *testing.T) {
	s := newScene(t, time.Hour)
	defer s.simulate(t)()
	instance := s.launchWithPods(t, 1)
	s.server.bind("a", instance.PrivateDNSName)
	s.eventually(t, s.runs("a"))
	s.eventually(t, s.ready(1))
	if err := s.p.Stop(t.Context(), instance.ID); err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * time.Second) // the simulator has looked several times
	s.server.evict("a", time.Second)
	s.server.bind("b", instance.PrivateDNSName)
	<-time.After(2 * time.Second)
	s.server.mutex.Lock()
	if a, b := s.server.pods["default/a"], s.server.pods["default/b"]; a.Status.Phase != corev1.PodRunning || b.Status.Phase != corev1.PodPending {
		t.Errorf("pods of a stopped machine are %s and %s", a.Status.Phase, b.Status.Phase)
	}
	s.server.mutex.Unlock()
	s.launchWithPods(t, 1)
	s.eventually(t, s.gone("a"))
	s.eventually(t, s.runs("b"))
}

// Fields of a status that an API server drops are not written again and again.
func TestPodsOfAnOlderAPIServer(t *testing.T) {
	s := newScene(t, time.Hour)
	s.server.drops = true
	defer s.simulate(t)()
	instance := s.launchWithPods(t, 1)
	s.server.bind("a", instance.PrivateDNSName)
	s.eventually(t, s.runs("a"))
	<-time.After(time.Second)
	if n := s.asked()["PUT pods/status"]; n > 2 {
		t.Errorf("the status of a pod was written %d times", n)
	}
}
