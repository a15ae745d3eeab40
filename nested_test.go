// SPDX-License-Identifier: Apache-2.0

package muster_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/release"
)

// A program of a nested module that imports Muster's packages is built with what these require: its go.mod has to say
// so, too, and nothing but the build of that program would tell.
func TestNestedProgramsHaveTheirModules(t *testing.T) {
	for _, dir := range []string{"egress", "mcp", "test/console"} {
		command := exec.CommandContext(t.Context(), "go", "-C", dir, "list", "-mod=readonly", "-deps", "./...")
		command.Env = append(os.Environ(), "GOWORK=off")
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: run `go -C %s mod tidy`: %v\n%s", dir, dir, err, out)
		}
	}
}

// Packages of one module at one version are compiled once for two programs: otherwise a newcomer's first build takes
// minutes longer.
func TestKubernetesIsBuiltWithOurVersions(t *testing.T) {
	nested := "kubernetes/" + release.Default().Folder + "/go.mod"
	ours, theirs := requirements(t, "go.mod"), requirements(t, nested)
	differ := map[string]string{ // small ones, which something else in their build asks for
		"github.com/container-storage-interface/spec": "the volume driver speaks a newer CSI than Kubernetes",
		"github.com/containerd/ttrpc":                 "Kubernetes asks for a newer one",
	}
	for module, version := range theirs {
		own, both := ours[module]
		staged := strings.HasPrefix(module, "k8s.io/") && version == "v0.0.0" // replaced by its own source
		if differs := both && own != version && !staged; differs != (differ[module] != "") {
			t.Errorf("%s: %s in %s, %q in go.mod; make them equal, or say above why they are not", module, version, nested, own)
		}
	}
}

// requirements are the versions that a go.mod requires.
func requirements(t *testing.T, file string) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	var module struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, r := range module.Require {
		versions[r.Path] = r.Version
	}
	return versions
}
