// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
)

// Runtime begins the ids of containers, and names what runs them.
const Runtime = "simulated"

// run sets what is said while the containers run: init containers have ended, one after the other, and sidecars among
// them run.
func (r *round) run(pod *corev1.Pod, s *corev1.PodStatus) {
	s.Phase = corev1.PodRunning
	s.InitContainerStatuses = r.each(pod, pod.Spec.InitContainers, s.InitContainerStatuses, func(c *corev1.Container, cs *corev1.ContainerStatus) {
		if isSidecar(c) {
			r.running(cs)
			return
		}
		cs.Ready, cs.Started = true, new(false)
		if cs.State.Terminated == nil {
			r.terminated(cs, r.now, result{container: reasonCompleted})
		}
	})
	s.ContainerStatuses = r.each(pod, pod.Spec.Containers, s.ContainerStatuses, func(_ *corev1.Container, cs *corev1.ContainerStatus) { r.running(cs) })
	podResources(pod, s)
	r.conditions(pod, s)
}

// wait sets what is said of a pod whose network is not there.
func (r *round) wait(pod *corev1.Pod, s *corev1.PodStatus) {
	s.Phase = corev1.PodPending
	reason := "ContainerCreating"
	if len(pod.Spec.InitContainers) > 0 {
		reason = "PodInitializing"
	}
	waiting := func(_ *corev1.Container, cs *corev1.ContainerStatus) {
		cs.ContainerID, cs.Started, cs.Resources, cs.AllocatedResources = "", new(false), nil, nil
		cs.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	s.InitContainerStatuses = r.each(pod, pod.Spec.InitContainers, s.InitContainerStatuses, waiting)
	s.ContainerStatuses = r.each(pod, pod.Spec.Containers, s.ContainerStatuses, waiting)
	podResources(pod, s)
	r.conditions(pod, s)
}

// end sets what is said once the containers have ended.
func (r *round) end(pod *corev1.Pod, s *corev1.PodStatus, how result) {
	s.Phase, s.Reason, s.Message = how.phase, how.podReason, how.podExplained
	started := *s.StartTime
	stop := func(_ *corev1.Container, cs *corev1.ContainerStatus) {
		if cs.State.Terminated == nil {
			r.terminated(cs, started, how)
			cs.Ready = false
		}
		cs.Started = new(false)
	}
	s.InitContainerStatuses = r.each(pod, pod.Spec.InitContainers, s.InitContainerStatuses, stop)
	s.ContainerStatuses = r.each(pod, pod.Spec.Containers, s.ContainerStatuses, stop)
	podResources(pod, s)
	r.conditions(pod, s)
}

// each makes the statuses of containers, in their order, from those that were said before.
func (r *round) each(pod *corev1.Pod, containers []corev1.Container, before []corev1.ContainerStatus, set func(*corev1.Container, *corev1.ContainerStatus)) []corev1.ContainerStatus {
	if len(containers) == 0 {
		return nil
	}
	statuses := make([]corev1.ContainerStatus, 0, len(containers))
	for i := range containers {
		c := &containers[i]
		cs := corev1.ContainerStatus{Name: c.Name, Image: c.Image}
		for j := range before {
			if before[j].Name == c.Name {
				cs = *before[j].DeepCopy()
			}
		}
		if cs.ContainerID == "" {
			cs.ContainerID = containerID(pod, c.Name)
		}
		cs.AllocatedResources, cs.Resources, cs.VolumeMounts = c.Resources.Requests.DeepCopy(), c.Resources.DeepCopy(), mounts(c)
		set(c, &cs)
		statuses = append(statuses, cs)
	}
	return statuses
}

// running says that a container runs, since now if it did not.
func (r *round) running(cs *corev1.ContainerStatus) {
	cs.Ready, cs.Started = true, new(true)
	if cs.State.Running == nil {
		cs.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: r.now}}
	}
}

// terminated says that a container has just ended. Began is when it started, if it is not said to run.
func (r *round) terminated(cs *corev1.ContainerStatus, began metav1.Time, how result) {
	if cs.State.Running != nil {
		began = cs.State.Running.StartedAt
	}
	cs.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: how.exitCode, Reason: how.container, StartedAt: began, FinishedAt: r.now, ContainerID: cs.ContainerID,
	}}
}

// isSidecar reports whether an init container runs beside the others until the pod ends.
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// containerID is the same whoever asks: a process that is started again takes a container for no other.
func containerID(pod *corev1.Pod, name string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s", pod.UID, name))
	return Runtime + "://" + hex.EncodeToString(sum[:])
}

// mounts are the volumes of a container, by the kubelet's own words: a mount that is only read is recursively so if the
// container asks for it. Any runtime of today can do that.
func mounts(c *corev1.Container) []corev1.VolumeMountStatus {
	if len(c.VolumeMounts) == 0 {
		return nil
	}
	statuses := make([]corev1.VolumeMountStatus, 0, len(c.VolumeMounts))
	for _, mount := range c.VolumeMounts {
		status := corev1.VolumeMountStatus{Name: mount.Name, MountPath: mount.MountPath, ReadOnly: mount.ReadOnly}
		if mount.ReadOnly {
			mode := corev1.RecursiveReadOnlyDisabled
			if asked := mount.RecursiveReadOnly; asked != nil && *asked != corev1.RecursiveReadOnlyDisabled {
				mode = corev1.RecursiveReadOnlyEnabled
			}
			status.RecursiveReadOnly = &mode
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// podResources sets what the pod as a whole has of the node.
func podResources(pod *corev1.Pod, s *corev1.PodStatus) {
	requests, limits := resource.PodRequests(pod, resource.PodResourcesOptions{}), resource.PodLimits(pod, resource.PodResourcesOptions{})
	s.AllocatedResources, s.Resources = nil, &corev1.ResourceRequirements{}
	if len(requests) > 0 {
		s.AllocatedResources, s.Resources.Requests = requests, requests.DeepCopy()
	}
	if len(limits) > 0 {
		s.Resources.Limits = limits
	}
}
