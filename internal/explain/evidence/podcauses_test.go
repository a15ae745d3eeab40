// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/explain/evidence"
)

// eventOf is an Event about the pod by somebody, as it was recorded.
func eventOf(by, reason, message string) *corev1.Event {
	e := event("Pod", reason, time.Minute)
	e.Name += by
	e.Source.Component, e.Message = by, message
	return e
}

// Words of schedulers, autoscalers and the kubelet about a pod name the cause, unless they may mean several things.
func TestCausesOfPods(t *testing.T) {
	t.Parallel()
	const noRoom = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
	unscheduled := []corev1.PodCondition{podCondition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, noRoom)}
	notReady := []corev1.PodCondition{podCondition(corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady", "containers with unready status: [c]")}
	scheduler := eventOf("default-scheduler", "FailedScheduling", noRoom)
	pull := func(reason, message string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
	const refused = `failed to pull and unpack image "registry.example.org/a:v1": failed to resolve reference "registry.example.org/a:v1": failed to authorize: failed to fetch oauth token: unexpected status from GET request to https://registry.example.org/token: 401 Unauthorized`
	for name, test := range map[string]struct {
		conditions []corev1.PodCondition
		containers []corev1.ContainerStatus
		events     []client.Object
		want       string
	}{
		"the scheduler alone": {unscheduled, nil, []client.Object{scheduler}, "Cause M-POD-94"},
		"Karpenter, too": {unscheduled, nil, []client.Object{scheduler, eventOf("karpenter", "FailedScheduling",
			`Failed to schedule pod, incompatible with nodepool "default", daemonset overhead={"pods":"0"}, no instance type met all requirements, requirements=kubernetes.io/arch In [amd64], resources={"cpu":"1000","pods":"1"}`)}, "Cause M-POD-76"},
		"Karpenter, of something else": {unscheduled, nil, []client.Object{scheduler, eventOf("karpenter", "FailedScheduling", `Failed to schedule pod, unable to determine volume topology`)}, "Cause M-POD-94"},
		"groups are at their maximum":  {unscheduled, nil, []client.Object{scheduler, eventOf("cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached")}, "Cause M-GROUP-73"},
		"groups do not fit":            {unscheduled, nil, []client.Object{scheduler, eventOf("cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 Insufficient memory")}, "Cause M-POD-94"},
		"no sandbox image": {notReady, pull("ContainerCreating", ""), []client.Object{eventOf("kubelet", "FailedCreatePodSandBox",
			`Failed to create pod sandbox: rpc error: code = DeadlineExceeded desc = failed to get sandbox image "registry.k8s.io/pause:3.10": failed to pull image "registry.k8s.io/pause:3.10": dial tcp: i/o timeout`)}, "Cause M-NODE-57"},
		"another trouble of a sandbox": {notReady, pull("ContainerCreating", ""), []client.Object{eventOf("kubelet", "FailedCreatePodSandBox", `Failed to create pod sandbox: rpc error: something new`)}, "NotKnown"},
		"a password that is refused":   {notReady, pull("ErrImagePull", refused), nil, "Cause M-POD-82"},
		"the same, later":              {notReady, pull("ImagePullBackOff", `Back-off pulling image "registry.example.org/a:v1": ErrImagePull: `+refused), nil, "Cause M-POD-82"},
		"the same, and not loaded":     {notReady, pull("ErrImagePull", refused), []client.Object{eventOf("muster", "ImageNotLoaded", "image is not loaded")}, "Cause M-POD-82"},
		"an image that nobody has":     {notReady, pull("ErrImagePull", `pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`), nil, "NotKnown"},
	} {
		pod := &corev1.Pod{ObjectMeta: meta("web", time.Hour), Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: test.conditions, ContainerStatuses: test.containers}}
		f, err := evidence.Pod(t.Context(), cluster(t, "", append(test.events, pod)...), web, noon)
		if err != nil {
			t.Fatal(err)
		}
		if got := inWords(t, f); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
