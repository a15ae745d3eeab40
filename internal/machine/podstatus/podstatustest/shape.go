// SPDX-License-Identifier: Apache-2.0

// Package podstatustest compares what is reported about a simulated pod with what a kubelet reported about a real one.
package podstatustest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Shape returns a pod's status with what differs between two runs of one pod replaced: addresses, times and ids are
// "there" or not. Fields that only an image or a runtime knows are left out: the id of the image, its name as the runtime
// has it, and the user of the container. The resources of a pod that has ended are left out, too: a kubelet reads them
// from a control group that is being removed.
func Shape(pod *corev1.Pod) corev1.PodStatus {
	s := pod.Status.DeepCopy()
	for _, address := range []*string{&s.HostIP, &s.PodIP} {
		*address = there(*address)
	}
	for i := range s.HostIPs {
		s.HostIPs[i].IP = there(s.HostIPs[i].IP)
	}
	for i := range s.PodIPs {
		s.PodIPs[i].IP = there(s.PodIPs[i].IP)
	}
	if s.StartTime != nil {
		s.StartTime = new(known(*s.StartTime))
	}
	for i := range s.Conditions {
		c := &s.Conditions[i]
		c.LastTransitionTime = known(c.LastTransitionTime)
	}
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			shapeContainer(&list[i])
		}
	}
	if s.Phase == corev1.PodFailed || s.Phase == corev1.PodSucceeded {
		s.Resources = nil
	}
	return *s
}

func shapeContainer(cs *corev1.ContainerStatus) {
	cs.Image, cs.ImageID, cs.User = "", "", nil
	cs.ContainerID = id(cs.ContainerID)
	if running := cs.State.Running; running != nil {
		running.StartedAt = known(running.StartedAt)
	}
	if ended := cs.State.Terminated; ended != nil {
		ended.StartedAt, ended.FinishedAt, ended.ContainerID = known(ended.StartedAt), known(ended.FinishedAt), id(ended.ContainerID)
	}
}

func there(text string) string {
	if text == "" {
		return ""
	}
	return "there"
}

// id keeps the form of a container's id: of a runtime, with so many digits.
func id(text string) string {
	_, digits, ok := strings.Cut(text, "://")
	if !ok {
		return text
	}
	return "runtime://" + strings.Repeat("0", len(digits))
}

func known(t metav1.Time) metav1.Time {
	if t.IsZero() {
		return t
	}
	return metav1.Unix(0, 0)
}
