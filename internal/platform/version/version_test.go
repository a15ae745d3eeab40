// SPDX-License-Identifier: Apache-2.0

package version

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUpstreamVersionsAreThoseOfTheModules(t *testing.T) {
	for _, tc := range []struct{ dir, module, version string }{
		{"kubernetes", "k8s.io/kubernetes", Kubernetes},
		{"runtime/containerd", "github.com/containerd/containerd/v2", Containerd},
		{"runtime/runc", "github.com/opencontainers/runc", Runc},
		{"runtime/cni", "github.com/containernetworking/plugins", CNI},
		{"images", "github.com/coredns/coredns", CoreDNS},
	} {
		t.Run(tc.module, func(t *testing.T) {
			path := filepath.Join("..", "..", "..", filepath.FromSlash(tc.dir), "go.mod")
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(content)) {
				fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
				if len(fields) < 2 || fields[0] != tc.module || !strings.HasPrefix(fields[1], "v") {
					continue
				}
				if fields[1] != tc.version {
					t.Errorf("%s requires %s, this package says %s", path, fields[1], tc.version)
				}
				return
			}
			t.Errorf("%s does not require %s", path, tc.module)
		})
	}
}
