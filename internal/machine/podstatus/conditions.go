// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The kubelet's reasons (pkg/kubelet/status/generate.go).
const (
	reasonPodCompleted = "PodCompleted"
	reasonPodFailed    = "PodFailed"
	reasonNotReady     = "ContainersNotReady"
	reasonNotInitial   = "ContainersNotInitialized"
	reasonGates        = "ReadinessGatesNotReady"
)

// ownConditions are the conditions that the kubelet alone writes from then on, in its order. PodScheduled is the
// scheduler's before.
func ownConditions() []corev1.PodConditionType {
	return []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled}
}

// conditions sets the conditions that are the kubelet's, in its order, behind those of others.
func (r *round) conditions(pod *corev1.Pod, s *corev1.PodStatus) {
	before := s.Conditions
	own := []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: truth(s.Phase == corev1.PodRunning)},
		initialized(pod, s),
		ready(pod, s),
		containersReady(pod, s),
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
	}
	s.Conditions = make([]corev1.PodCondition, 0, len(before)+len(own))
	for _, c := range before {
		if find(own, c.Type) == nil {
			s.Conditions = append(s.Conditions, c)
		}
	}
	for _, c := range own {
		c.ObservedGeneration, c.LastTransitionTime = pod.Generation, r.now
		if was := find(before, c.Type); was != nil && was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
		s.Conditions = append(s.Conditions, c)
	}
}

func initialized(pod *corev1.Pod, s *corev1.PodStatus) corev1.PodCondition {
	c := corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
	switch {
	case s.Phase == corev1.PodSucceeded:
		c.Reason = reasonPodCompleted
	case s.Phase == corev1.PodPending && len(pod.Spec.InitContainers) > 0:
		c.Status, c.Reason = corev1.ConditionFalse, reasonNotInitial
		c.Message = fmt.Sprintf("containers with incomplete status: %s", namesOf(pod.Spec.InitContainers))
	}
	return c
}

func containersReady(pod *corev1.Pod, s *corev1.PodStatus) corev1.PodCondition {
	c := corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse}
	switch s.Phase {
	case corev1.PodRunning:
		c.Status = corev1.ConditionTrue
	case corev1.PodSucceeded:
		c.Reason = reasonPodCompleted
	case corev1.PodFailed:
		c.Reason = reasonPodFailed
	default:
		c.Reason, c.Message = reasonNotReady, fmt.Sprintf("containers with unready status: %s", unready(pod))
	}
	return c
}

// ready is the condition that balancers and controllers wait for. While the containers are not ready it says what their
// own condition says, else what readiness gates are waited for.
func ready(pod *corev1.Pod, s *corev1.PodStatus) corev1.PodCondition {
	c := containersReady(pod, s)
	c.Type = corev1.PodReady
	if c.Status != corev1.ConditionTrue {
		return c
	}
	var missing []string
	for _, gate := range pod.Spec.ReadinessGates {
		switch said := find(s.Conditions, gate.ConditionType); {
		case said == nil:
			missing = append(missing, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case said.Status != corev1.ConditionTrue:
			missing = append(missing, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, said.Status))
		}
	}
	if len(missing) > 0 {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, reasonGates, strings.Join(missing, ", ")
	}
	return c
}

// unready names the containers that are not ready while a pod waits for its network: all, sidecars first.
func unready(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; isSidecar(c) {
			names = append(names, c.Name)
		}
	}
	return append(names, namesOf(pod.Spec.Containers)...)
}

func namesOf(containers []corev1.Container) []string {
	names := make([]string, 0, len(containers))
	for i := range containers {
		names = append(names, containers[i].Name)
	}
	return names
}

func truth(value bool) corev1.ConditionStatus {
	if value {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

func find(conditions []corev1.PodCondition, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}
