// SPDX-License-Identifier: Apache-2.0

package balancerrange

import (
	"os"
	"strings"
	"testing"

	"muster.dev/muster/internal/network/loadbalancer"
	"muster.dev/muster/internal/platform/statedir"
)

// No address is chosen from a range that cannot be read, and choosing one again mends it.
func TestDamagedRange(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	for name, content := range map[string]string{
		"no JSON": "{", "another version": `{"version": 2, "range": "10.0.0.0/8"}`, "no version": `{"range": "10.0.0.0/8"}`, "no range": `{"version": 1}`,
		"everything": `{"version": 1, "range": "0.0.0.0/0"}`, "an unknown key": `{"version": 1, "range": "10.0.0.0/8", "host": "a"}`, "empty": "",
	} {
		if err := os.WriteFile(dir.LoadBalancers(), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(dir); err == nil || !strings.Contains(err.Error(), "loadbalancers.json is damaged") {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if changed, err := Keep(dir, loadbalancer.DefaultRange); err != nil || !changed {
			t.Errorf("%s: changed %v, %v", name, changed, err)
		}
		if got, err := Read(dir); err != nil || got != loadbalancer.DefaultRange {
			t.Errorf("%s, chosen again: %s, %v", name, got, err)
		}
	}
	if err := os.Remove(dir.LoadBalancers()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir.LoadBalancers(), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(dir); err == nil {
		t.Errorf("a directory: %s", got)
	}
}
