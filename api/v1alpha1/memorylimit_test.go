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
		if got := (ClusterAPIServer{MemoryLimit: text}).MemoryBytes(); got != want {
			t.Errorf("%q is %d bytes, want %d", text, got, want)
		}
	}
}

// What the definition and the docs say of the default is what it is.
func TestDefaultIsTold(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"crds/muster.dev_clusters.yaml": fmt.Sprintf("means %dGi.", DefaultAPIServerMemoryLimit>>30),
		"../../docs/service.md":         fmt.Sprintf("left out, it is %dGi.", DefaultAPIServerMemoryLimit>>30),
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
