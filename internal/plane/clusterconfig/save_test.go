// SPDX-License-Identifier: Apache-2.0

package clusterconfig

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/api/v1alpha1"
)

// saved is a configuration with two node groups.
func saved() Config {
	w := Default(3, v1alpha1.ProviderSimulated)
	w.Cluster.Name, w.Cluster.Namespace, w.Cluster.Spec.Name = "blue", "blue", "blue"
	w.Cluster.Spec.APIServer.Port = 20999
	w.NodeGroups[0].Namespace = "blue"
	w.NodeGroups[0].Spec.Labels = v1alpha1.NodeLabels{"team": "a"}
	w.NodeGroups[0].Spec.Taints = v1alpha1.NodeTaints{{Key: "only", Value: "x", Effect: "NoSchedule"}}
	second := w.NodeGroups[0].DeepCopy()
	second.Name, second.Spec.Name = "other", "other"
	second.Spec.ScalingConfig = v1alpha1.ScalingConfig{MinSize: 0, DesiredSize: 0, MaxSize: 7}
	w.NodeGroups = append(w.NodeGroups, second)
	w.DefaultMax = nil // the saved file has maxSize
	return w
}

func TestSavedConfigurationIsReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "muster.yaml")
	for i, want := range []bool{true, false} {
		changed, err := Save(path, saved())
		if err != nil || changed != want {
			t.Errorf("save %d: %v, %v", i+1, changed, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", path, info, err)
		}
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(saved(), got); diff != "" {
		t.Errorf("(-saved +read):\n%s", diff)
	}
	more := saved()
	more.NodeGroups = more.NodeGroups[:1]
	if changed, err := Save(path, more); err != nil || !changed {
		t.Errorf("another configuration: %v, %v", changed, err)
	}
}
