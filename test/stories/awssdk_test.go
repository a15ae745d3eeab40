// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestActionsByTheSDK calls every action of the AWS APIs by the clients of AWS's SDK for Go (test/awssdk/live). They are a module of their own,
// since this one does not link them.
func TestActionsByTheSDK(t *testing.T) {
	t.Parallel()
	tests := filepath.Join(t.TempDir(), "live.test")
	build := exec.CommandContext(t.Context(), "go", "-C", filepath.Join("..", "awssdk"), "test", "-vet=off", "-c", "-o", tests, "./live")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the tests: %v\n%s", err, out)
	}
	i := newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready(60 * time.Second)
	w := newIAM(t, i)
	subnets := strings.Fields(i.mustKubectl("--context", "muster-management", "get", "subnets", "-o", "jsonpath={.items[*].metadata.name}"))
	if len(subnets) < 2 {
		t.Fatalf("the default VPC has the subnets %v", subnets)
	}
	out, err := w.run(append(w.admin, "MUSTER_LIVE_SUBNETS="+strings.Join(subnets[:2], " ")), tests, "-test.v", "-test.count=1", "-test.timeout=10m")
	for line := range strings.Lines(out) {
		if text := strings.TrimSpace(line); !strings.HasPrefix(text, "=== ") {
			t.Log(strings.TrimRight(line, "\n"))
		}
	}
	if err != nil {
		t.Error(err)
	}
	if strings.Contains(out, "--- SKIP") || strings.Count(out, "--- PASS: TestActions/") < 20 {
		t.Error("tests did not run")
	}
}
