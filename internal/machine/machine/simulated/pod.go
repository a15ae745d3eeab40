// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/podstatus"
)

// podRunner is what the node of one machine does about its pods. Only one goroutine at a time may use it.
type podRunner struct {
	record      machine.Record
	core        coreclient.CoreV1Interface // with the node's certificate
	log         *slog.Logger
	allocatable corev1.ResourceList // for the requests of all pods together
	podRange    netip.Prefix        // of their addresses; not valid before it is known
}

// errNoPodRange says that a Node has no addresses for pods yet.
var errNoPodRange = errors.New("the Node has no range of pods' addresses yet")

// node is what the kubelet knows of its node. The Node is read until its range of pods' addresses is known, which
// stays the same for its life.
func (r *podRunner) node(ctx context.Context) (podstatus.Node, error) {
	if !r.podRange.IsValid() {
		node, err := r.core.Nodes().Get(ctx, r.record.PrivateDNSName, metav1.GetOptions{})
		if err != nil {
			return podstatus.Node{}, fmt.Errorf("getting node: %w", err)
		}
		if node.Spec.PodCIDR == "" {
			return podstatus.Node{}, errNoPodRange
		}
		if r.podRange, err = netip.ParsePrefix(node.Spec.PodCIDR); err != nil {
			return podstatus.Node{}, fmt.Errorf("reading the Node's range of pods' addresses: %w", err)
		}
	}
	return podstatus.Node{Name: r.record.PrivateDNSName, Address: r.record.PrivateIP, PodRange: r.podRange, Allocatable: r.allocatable}, nil
}

// report writes the status of a pod, and returns the pod as it is then. The write is refused if the pod has changed
// since it was read. A write of the status changes no spec, so none is sent.
func (r *podRunner) report(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) (*corev1.Pod, error) {
	written, err := r.core.Pods(pod.Namespace).UpdateStatus(ctx, &corev1.Pod{ObjectMeta: pod.ObjectMeta, Status: *status}, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("reporting status of pod: %w", err)
	}
	return written, nil
}

// remove removes a pod of which nothing runs any more, as a kubelet does: this very pod.
func (r *podRunner) remove(ctx context.Context, pod *corev1.Pod) error {
	err := r.core.Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if err != nil {
		return fmt.Errorf("removing pod: %w", err)
	}
	return nil
}

// trim returns what this package has to know of a pod. Of thousands of pods, commands, environments and probes take
// most of the memory.
func trim(pod *corev1.Pod) *corev1.Pod {
	kept := &corev1.Pod{ObjectMeta: pod.ObjectMeta, Status: pod.Status}
	kept.ManagedFields = nil
	kept.Spec = corev1.PodSpec{
		NodeName: pod.Spec.NodeName, RestartPolicy: pod.Spec.RestartPolicy, HostNetwork: pod.Spec.HostNetwork,
		ActiveDeadlineSeconds: pod.Spec.ActiveDeadlineSeconds, ReadinessGates: pod.Spec.ReadinessGates,
		InitContainers: trimContainers(pod.Spec.InitContainers), Containers: trimContainers(pod.Spec.Containers),
		Overhead: pod.Spec.Overhead, Resources: pod.Spec.Resources,
	}
	return kept
}

func trimContainers(containers []corev1.Container) []corev1.Container {
	kept := make([]corev1.Container, 0, len(containers))
	for i := range containers {
		c := &containers[i]
		kept = append(kept, corev1.Container{
			Name: c.Name, Image: c.Image, RestartPolicy: c.RestartPolicy, Resources: c.Resources, VolumeMounts: c.VolumeMounts,
		})
	}
	return kept
}
