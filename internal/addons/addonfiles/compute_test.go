// SPDX-License-Identifier: Apache-2.0

package addonfiles

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

func TestCheckCompute(t *testing.T) {
	t.Parallel()
	built := t.TempDir()
	if err := os.Mkdir(filepath.Join(built, "addons"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"karpenter", "karpenter-kinds.yaml"} {
		if err := os.WriteFile(filepath.Join(built, "addons", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	on := &v1alpha1.ClusterCompute{Enabled: true}
	for name, c := range map[string]struct {
		compute *v1alpha1.ClusterCompute
		binDir  string
		local   bool
		want    string
	}{
		"nothing asked":   {nil, "/nowhere", false, ""},
		"off":             {&v1alpha1.ClusterCompute{}, "/nowhere", false, ""},
		"on":              {on, built, true, ""},
		"simulated alone": {on, built, false, "need root"},
		"not built":       {on, t.TempDir(), true, "run `make karpenter` where Muster was built, once: it takes about 5 minutes"},
	} {
		err := CheckCompute(v1alpha1.ClusterSpec{Name: "blue", Compute: c.compute}, c.binDir, c.local)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: %v, want %q in one line", name, err, c.want)
		}
	}
}

func TestCheckComputeAlone(t *testing.T) {
	t.Parallel()
	both := []v1alpha1.Addon{{Spec: v1alpha1.AddonSpec{AddonName: "coredns"}}, {Spec: v1alpha1.AddonSpec{AddonName: "karpenter"}}}
	wanted := v1alpha1.ClusterSpec{Name: "blue", Compute: &v1alpha1.ClusterCompute{Enabled: true}}
	if err := CheckComputeAlone(wanted, both[:1]); err != nil {
		t.Error(err)
	}
	if err := CheckComputeAlone(wanted, both); err == nil || !strings.Contains(err.Error(), "cluster blue has the add-on karpenter") {
		t.Errorf("%v", err)
	}
	wanted.Compute.Enabled = false
	if err := CheckComputeAlone(wanted, both); err != nil {
		t.Error(err)
	}
}
