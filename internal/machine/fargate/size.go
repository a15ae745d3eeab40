// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"muster.dev/muster/internal/machine/instancetype"
)

// KubeletMiB is the memory in MiB that EKS adds to what a pod asks for, for the kubelet, the container runtime and
// kube-proxy.
const KubeletMiB = 256

// Size is a size of Fargate's: thousandths of a vCPU, and memory in MiB.
type Size struct {
	MilliCPU  int64
	MemoryMiB int64
}

// family is the range of memory of one number of vCPUs, in MiB: from, to, and the step between two sizes.
type family struct{ milliCPU, from, to, step int64 }

// families are EKS's sizes (user guide, "Pod CPU and memory").
func families() []family {
	const gib = 1024
	return []family{
		{250, gib / 2, gib / 2, gib},
		{250, gib, 2 * gib, gib},
		{500, gib, 4 * gib, gib},
		{1000, 2 * gib, 8 * gib, gib},
		{2000, 4 * gib, 16 * gib, gib},
		{4000, 8 * gib, 30 * gib, gib},
		{8000, 16 * gib, 60 * gib, 4 * gib},
		{16000, 32 * gib, 120 * gib, 8 * gib},
	}
}

// Sizes returns all sizes, by vCPUs and memory.
func Sizes() []Size {
	var all []Size
	for _, f := range families() {
		for memory := f.from; memory <= f.to; memory += f.step {
			all = append(all, Size{f.milliCPU, memory})
		}
	}
	return all
}

// String is the size as the annotation CapacityProvisioned has it, such as 0.25vCPU 0.5GB.
func (s Size) String() string {
	return number(s.MilliCPU, 1000) + "vCPU " + number(s.MemoryMiB, 1024) + "GB"
}

func number(value, of int64) string {
	return strconv.FormatFloat(float64(value)/float64(of), 'f', -1, 64)
}

// Type is the instance type of a machine of the size, which EC2 does not have.
func (s Size) Type() string { return instancetype.FargateName(s.MilliCPU, s.MemoryMiB) }

// Request is what a pod asks for: thousandths of a vCPU, and bytes of memory. Init containers count as Kubernetes'
// scheduler counts them. A pod that asks for nothing has 0.
type Request struct{ MilliCPU, Memory int64 }

// RequestOf returns what a pod asks for.
func RequestOf(pod *corev1.Pod) Request {
	asked := resource.PodRequests(pod, resource.PodResourcesOptions{})
	return Request{asked.Cpu().MilliValue(), asked.Memory().Value()}
}

// SizeOf returns the next larger size for a request, with the memory of the kubelet. The error says what the largest
// size is if that is too small.
func SizeOf(r Request) (Size, error) {
	const mebibyte = 1 << 20
	memory := r.Memory/mebibyte + KubeletMiB
	if r.Memory%mebibyte > 0 {
		memory++
	}
	for _, s := range Sizes() {
		if s.MilliCPU >= r.MilliCPU && s.MemoryMiB >= memory {
			return s, nil
		}
	}
	return Size{}, fmt.Errorf("the pod requests %s vCPUs and %d MiB of memory (with %d MiB for the kubelet), and the largest machine has 16 vCPUs and 120 GB: request less",
		number(r.MilliCPU, 1000), memory, KubeletMiB)
}
