// SPDX-License-Identifier: Apache-2.0

package muster_test

import (
	"os"
	"regexp"
	"testing"

	"muster.dev/muster/internal/platform/release"
)

// Upstream's suite is a module of its own for each minor, so that lint, tests and build do without it, and looks for
// what its own version promises.
func TestTheSuiteIsOfTheClustersVersion(t *testing.T) {
	for _, r := range release.All() {
		if suite := kubernetesVersion(t, "test/conformance/"+r.Folder+"/go.mod"); suite != r.Version {
			t.Errorf("test/conformance/%s/go.mod requires k8s.io/kubernetes %s, the release is %s: `make conformance MINOR=%s` must run the suite of the cluster's version",
				r.Folder, suite, r.Version, r.Minor())
		}
	}
	for _, link := range []string{"go.mod", "go.sum"} {
		target, err := os.Readlink("test/conformance/" + link)
		if want := release.Default().Folder + "/" + link; err != nil || target != want {
			t.Errorf("test/conformance/%s is a link to %q (%v): `make conformance` must run the suite of the default minor, %s", link, target, err, want)
		}
	}
}

func kubernetesVersion(t *testing.T, path string) string {
	t.Helper()
	mod, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^(?:require )?\s*k8s\.io/kubernetes (v\S+)$`).FindSubmatch(mod)
	if found == nil {
		t.Fatalf("%s does not require k8s.io/kubernetes", path)
	}
	return string(found[1])
}
