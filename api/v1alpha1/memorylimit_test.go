// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestMemoryBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"": DefaultAPIServerMemoryLimit, "512Mi": 512 << 20, "1536Mi": 1536 << 20, "4Gi": 4 << 30, "1024Gi": 1 << 40,
		"1Gi of a damaged record": DefaultAPIServerMemoryLimit, "511Mi": DefaultAPIServerMemoryLimit,
	} {
		for _, host := range []int64{0, 64 << 30} {
			if got := (ClusterAPIServer{MemoryLimit: text}).MemoryBytes(host); got != want {
				t.Errorf("%q is %d bytes on a host of %d, want %d", text, got, host, want)
			}
		}
	}
	for host, want := range map[int64]int64{1 << 30: 512 << 20, 4 << 30: 1 << 30, 16 << 30: 4 << 30, 24 << 30: 6 << 30} {
		if got := (ClusterAPIServer{}).MemoryBytes(host); got != want {
			t.Errorf("on a host of %d it is %d bytes, want %d", host, got, want)
		}
		if got := (ClusterAPIServer{MemoryLimit: "8Gi"}).MemoryBytes(host); got != 8<<30 {
			t.Errorf("on a host of %d what was asked for is %d bytes", host, got)
		}
	}
}

// The definition and the docs name the default that the code has.
func TestDefaultIsTold(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"crds/muster.dev_clusters.yaml": fmt.Sprintf("means %dGi, or a quarter of the host's memory where that is less.", DefaultAPIServerMemoryLimit>>30),
		"../../docs/service.md":         fmt.Sprintf("left out, it is %dGi, or a quarter of the host's memory where that is less.", DefaultAPIServerMemoryLimit>>30),
	} {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(string(raw)), " "), want) {
			t.Errorf("%s does not say %q", path, want)
		}
	}
}
