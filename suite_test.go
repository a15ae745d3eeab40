// SPDX-License-Identifier: Apache-2.0

package muster_test

import (
	"os"
	"regexp"
	"testing"

	"muster.dev/muster/internal/platform/release"
)

// Upstream's suite is a module of its own, so that lint, tests and build do without it, and looks for what its own
// version promises.
func TestTheSuiteIsOfTheClustersVersion(t *testing.T) {
	suite, cluster := kubernetesVersion(t, "test/conformance/go.mod"), release.Default().Version
	if suite != cluster {
		t.Errorf("test/conformance/go.mod requires k8s.io/kubernetes %s, the default release is %s: `make conformance` must run the suite of the cluster's version", suite, cluster)
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
