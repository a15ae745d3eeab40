// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/clustercontroller"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/readiness"
	"muster.dev/muster/internal/platform/release"
)

// knowsGang writes programs of a release that take the feature gate Gang alone, and say so in a file when they are asked.
func knowsGang(t *testing.T, binDir string, of release.Release) (asked string) {
	t.Helper()
	asked = filepath.Join(t.TempDir(), "asked")
	for _, path := range of.PlanePrograms() {
		path = filepath.Join(binDir, path)
		script := "#!/bin/sh\necho asked >>" + asked + "\ncase \"$1\" in --feature-gates=Gang=*) exit 0 ;; esac\necho 'E1 1 run.go:72] \"command failed\" err=\"unrecognized feature gate: Nope\"'\nexit 1\n"
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(script), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	return asked
}

func TestFeatureGatesAreRefused(t *testing.T) {
	hosts, object := newHosts(t), asked("blue")
	hosts.account.BinDir = t.TempDir()
	log := knowsGang(t, hosts.account.BinDir, release.Default())
	object.Spec.FeatureGates = v1alpha1.FeatureGates{"Nope": true}
	var refusal *clustercontroller.Refusal
	const says = "spec.featureGates: Kubernetes 1.36 does not take them: Nope cannot be true: unrecognized feature gate: Nope"
	if err := hosts.admitGates(t.Context(), object); !errors.As(err, &refusal) || refusal.Reason != readiness.ReasonInvalidSpec || !strings.HasPrefix(refusal.Message, says) {
		t.Errorf("of a new cluster: %v", err)
	}
	h := hosts.host(t.Context(), hosts.cfg.State.Cluster("blue"))
	if err := clustercontroller.Begin(h.dir, asked("blue")); err != nil {
		t.Fatal(err)
	}
	adopt := func() error {
		return h.adopt(object, hosts.move(t.Context(), object), hosts.settings(t.Context(), h))
	}
	count := func() int {
		raw, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(raw), "asked")
	}
	if err := adopt(); err == nil || !strings.HasPrefix(err.Error(), says) || len(h.reload) != 0 {
		t.Errorf("%v, %d reloads", err, len(h.reload))
	}
	before := count()
	if err := adopt(); err == nil || count() != before {
		t.Errorf("looked at again: %v, the programs were asked %d times, and %d before", err, count(), before)
	}
	object.Spec.FeatureGates = v1alpha1.FeatureGates{"Gang": true}
	if err := adopt(); err != nil || len(h.reload) != 1 {
		t.Errorf("%v, %d reloads", err, len(h.reload))
	}
	before = count()
	if err := adopt(); err != nil || count() != before {
		t.Errorf("gates of the record: %v, the programs were asked %d times, and %d before", err, count(), before)
	}
	if saved, err := clusterconfig.Read(h.dir.Record()); err != nil || !saved.Cluster.Spec.FeatureGates["Gang"] {
		t.Errorf("%+v, %v", saved.Cluster.Spec.FeatureGates, err)
	}

	// Gates that the programs of the next minor were not asked about are asked about.
	h.asked = askedGates{}
	is := v1alpha1.ClusterSpec{Version: "1.35", FeatureGates: object.Spec.FeatureGates}
	if err := hosts.settings(t.Context(), h)(is, object.Spec, release.Default()); err != nil || count() == before {
		t.Errorf("another minor: %v, the programs were asked %d times, and %d before", err, count(), before)
	}
}

// A cluster that cannot be asked for its Services refuses nothing: the change is looked at again.
func TestNodePortsAreLookedAt(t *testing.T) {
	hosts, object := newHosts(t), asked("blue")
	h := hosts.host(t.Context(), hosts.cfg.State.Cluster("blue"))
	if err := clustercontroller.Begin(h.dir, asked("blue")); err != nil {
		t.Fatal(err)
	}
	object.Spec.APIServer.ServiceNodePortRange = &v1alpha1.NodePortRange{MinPort: 30000, MaxPort: 32767}
	if err := h.adopt(object, anyRelease, hosts.settings(t.Context(), h)); err != nil {
		t.Errorf("the range that it has: %v", err)
	}
	object.Spec.APIServer.ServiceNodePortRange = &v1alpha1.NodePortRange{MinPort: 20000, MaxPort: 25000}
	err := h.adopt(object, anyRelease, hosts.settings(t.Context(), h))
	if _, ok := errors.AsType[unasked](err); !ok {
		t.Errorf("%v", err)
	}
}
