// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"muster.dev/muster/internal/machine/instancetype"
)

func container(cpu, memory string) corev1.Container {
	c := corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}
	if cpu != "" {
		c.Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		c.Resources.Requests[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return c
}

func TestSizeOfPods(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := container("500m", "1Gi")
	sidecar.RestartPolicy = &always
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"nothing requested":           {corev1.PodSpec{Containers: []corev1.Container{container("", "")}}, "0.25vCPU 0.5GB"},
		"what fits beside a kubelet":  {corev1.PodSpec{Containers: []corev1.Container{container("250m", "256Mi")}}, "0.25vCPU 0.5GB"},
		"a byte more":                 {corev1.PodSpec{Containers: []corev1.Container{container("250m", "268435457")}}, "0.25vCPU 1GB"},
		"more processors":             {corev1.PodSpec{Containers: []corev1.Container{container("251m", "")}}, "0.5vCPU 1GB"},
		"more memory":                 {corev1.PodSpec{Containers: []corev1.Container{container("100m", "2Gi")}}, "0.5vCPU 3GB"},
		"the sum of containers":       {corev1.PodSpec{Containers: []corev1.Container{container("500m", "1Gi"), container("500m", "1Gi")}}, "1vCPU 3GB"},
		"the largest init container":  {corev1.PodSpec{InitContainers: []corev1.Container{container("2", "1Gi")}, Containers: []corev1.Container{container("100m", "1Gi")}}, "2vCPU 4GB"},
		"a sidecar beside containers": {corev1.PodSpec{InitContainers: []corev1.Container{sidecar}, Containers: []corev1.Container{container("500m", "1Gi")}}, "1vCPU 3GB"},
		"the next step of 8 vCPUs":    {corev1.PodSpec{Containers: []corev1.Container{container("8", "17Gi")}}, "8vCPU 20GB"},
		"the largest":                 {corev1.PodSpec{Containers: []corev1.Container{container("16", "122624Mi")}}, "16vCPU 120GB"},
	} {
		if got, err := SizeOf(RequestOf(&corev1.Pod{Spec: c.spec})); err != nil || got.String() != c.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c.want)
		}
	}
	for _, c := range []corev1.Container{container("16001m", ""), container("", "122625Mi")} {
		if got, err := SizeOf(RequestOf(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{c}}})); err == nil || !strings.Contains(err.Error(), "the largest machine has 16 vCPUs and 120 GB") {
			t.Errorf("%v is %v, %v", c.Resources.Requests, got, err)
		}
	}
}

// The numbers of sizes are those of EKS's table.
func TestSizes(t *testing.T) {
	counts := map[int64]int{}
	for _, s := range Sizes() {
		counts[s.MilliCPU]++
		kind, err := instancetype.OfMachine(s.Type())
		if err != nil || kind.MemoryMiB != s.MemoryMiB || int64(kind.VCPUs) != max(2, s.MilliCPU/1000) {
			t.Errorf("%s is the type %+v, %v", s, kind, err)
		}
		if _, err := instancetype.Find(s.Type()); err == nil {
			t.Errorf("a request can name the type %s", s.Type())
		}
	}
	for milliCPU, want := range map[int64]int{250: 3, 500: 4, 1000: 7, 2000: 13, 4000: 23, 8000: 12, 16000: 12} {
		if counts[milliCPU] != want {
			t.Errorf("%d thousandths of a vCPU have %d sizes, want %d", milliCPU, counts[milliCPU], want)
		}
	}
}

// A size has room for the pod and the kubelet, and no smaller size of as many vCPUs or fewer has.
func TestSizeIsTheNextLarger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		asked := Request{rapid.Int64Range(0, 17000).Draw(t, "cpu"), rapid.Int64Range(0, 130<<30).Draw(t, "memory")}
		fits := func(s Size) bool {
			return s.MilliCPU >= asked.MilliCPU && s.MemoryMiB<<20 >= asked.Memory+KubeletMiB<<20
		}
		got, err := SizeOf(asked)
		if err == nil && !fits(got) {
			t.Fatalf("%+v has %s", asked, got)
		}
		for _, s := range Sizes() {
			if fits(s) && (err != nil || s.MilliCPU < got.MilliCPU || s.MilliCPU == got.MilliCPU && s.MemoryMiB < got.MemoryMiB) {
				t.Fatalf("%+v has %s, %v, and %s is enough", asked, got, err, s)
			}
		}
	})
}
