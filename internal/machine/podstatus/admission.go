// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// refuse is why a pod does not fit beside those that were admitted, by the kubelet's words (InsufficientResourceError
// in pkg/kubelet/lifecycle/predicate.go); "" if it fits. The scheduler has counted the same, so only a pod that names
// its node itself, or two schedulers, get that far. A resource that the node does not have is not its business.
func (r *round) refuse(pod *corev1.Pod) (reason, message string) {
	out := func(name corev1.ResourceName, requested, used, capacity int64) (string, string) {
		return "OutOf" + string(name), fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", name, requested, used, capacity)
	}
	if most := r.node.Allocatable.Pods().Value(); r.pods+1 > most {
		return out(corev1.ResourcePods, 1, r.pods, most)
	}
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	for _, name := range counted(requests) {
		capacity, has := r.node.Allocatable[name]
		if !has {
			continue
		}
		requested, used := requests[name], r.requested[name]
		left := capacity.DeepCopy()
		left.Sub(used)
		if requested.Sign() <= 0 || requested.Cmp(left) <= 0 {
			continue
		}
		if name == corev1.ResourceCPU {
			return out(name, requested.MilliValue(), used.MilliValue(), capacity.MilliValue())
		}
		return out(name, requested.Value(), used.Value(), capacity.Value())
	}
	return "", ""
}

// counted are the names of resources in the order in which they are looked at.
func counted(requests corev1.ResourceList) []corev1.ResourceName {
	names := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	var others []corev1.ResourceName
	for name := range requests {
		if !slices.Contains(names, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return append(names, others...)
}

// admit counts a pod.
func (r *round) admit(pod *corev1.Pod) {
	r.pods++
	for name, quantity := range resource.PodRequests(pod, resource.PodResourcesOptions{}) {
		sum := r.requested[name]
		sum.Add(quantity)
		r.requested[name] = sum
	}
}

// address gives a pod the lowest address of the node's range that no other pod there has; not valid if none is left or
// the range is not known. The first address is the gateway's and the last one is for broadcasts, as on other nodes.
func (r *round) address(pod *corev1.Pod) netip.Addr {
	if pod.Spec.HostNetwork {
		return r.node.Address
	}
	if !r.node.PodRange.IsValid() {
		return netip.Addr{}
	}
	gateway := r.node.PodRange.Masked().Addr().Next()
	for a := gateway.Next(); r.node.PodRange.Contains(a) && r.node.PodRange.Contains(a.Next()); a = a.Next() {
		if !r.taken[a] {
			r.taken[a] = true
			return a
		}
	}
	return netip.Addr{}
}
