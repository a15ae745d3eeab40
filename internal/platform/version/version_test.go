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
		{"etcd", "go.etcd.io/etcd/server/v3", Etcd},
		{"runtime/containerd", "github.com/containerd/containerd/v2", Containerd},
		{"runtime/runc", "github.com/opencontainers/runc", Runc},
		{"runtime/cni", "github.com/containernetworking/plugins", CNI},
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

func TestTheReleaseIsTheSameEverywhere(t *testing.T) {
	number := strings.TrimPrefix(Release, "v")
	for _, c := range []struct{ file, want string }{
		{"CHANGELOG.md", "\n## " + Release + " "},
		{"deploy/charts/muster-authenticator/Chart.yaml", "\nversion: " + number + "\n"},
		{"deploy/charts/muster-authenticator/Chart.yaml", "\nappVersion: " + Release + "\n"},
		{"deploy/charts/muster-pod-identity-webhook/Chart.yaml", "\nversion: " + number + "\n"},
		{"deploy/charts/muster-pod-identity-webhook/Chart.yaml", "\nappVersion: " + Release + "\n"},
		{"deploy/charts/muster-certificate-controller/Chart.yaml", "\nversion: " + number + "\n"},
		{"deploy/charts/muster-certificate-controller/Chart.yaml", "\nappVersion: " + Release + "\n"},
	} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(c.file)))
		if err != nil {
			t.Fatal(err)
		}
		at := strings.Index(string(raw), c.want)
		if at < 0 {
			t.Errorf("%s does not say %q", c.file, strings.TrimSpace(c.want))
		}
		if c.file == "CHANGELOG.md" && at != strings.Index(string(raw), "\n## v") {
			t.Errorf("%s: %s is not its first version", c.file, Release)
		}
	}
}
