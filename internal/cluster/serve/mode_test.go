// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"log/slog"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/clusterconfig"
)

func inMode(mode v1alpha1.AuthenticationMode) v1alpha1.ClusterSpec {
	return v1alpha1.ClusterSpec{Version: "v1.0.0", AccessConfig: v1alpha1.ClusterAccessConfig{AuthenticationMode: mode}}
}

func TestModesGoOneWay(t *testing.T) {
	modes := v1alpha1.AuthenticationModes()
	for i, is := range modes {
		for j, asked := range modes {
			err := checkMode(inMode(is), inMode(asked))
			if (err != nil) != (j < i) || err != nil && !strings.Contains(err.Error(), "write "+string(is)) {
				t.Errorf("from %s to %s: %v", is, asked, err)
			}
			if got := wantedSpec(inMode(is), inMode(asked)); got.AccessConfig.AuthenticationMode != modes[max(i, j)] || got.Version != "v1.0.0" {
				t.Errorf("from %s to %s: %s", is, asked, got.AccessConfig.AuthenticationMode)
			}
		}
	}
	if err := checkMode(v1alpha1.ClusterSpec{}, inMode(v1alpha1.AuthenticationConfigMap)); err != nil {
		t.Errorf("a cluster from before there were modes: %v", err)
	}
}

func TestModeThatWasSetOnTheObjectCounts(t *testing.T) {
	dir := newDir(t)
	wanted := clusterconfig.Default(0, v1alpha1.ProviderSimulated)
	if _, err := saveConfig(dir.Config(), wanted); err != nil {
		t.Fatal(err)
	}
	s, err := NewService(Config{State: dir, BinDir: "/bin", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	mode := func() v1alpha1.AuthenticationMode {
		saved, err := clusterconfig.Read(dir.Config())
		if err != nil {
			t.Fatal(err)
		}
		return saved.Cluster.Spec.AccessConfig.AuthenticationMode
	}
	s.adoptMode(&v1alpha1.Cluster{Spec: inMode(v1alpha1.AuthenticationConfigMap)})
	if mode() != v1alpha1.AuthenticationAPIAndConfigMap || len(s.reload) != 0 {
		t.Errorf("back to %s, %d reloads", mode(), len(s.reload))
	}
	s.adoptMode(&v1alpha1.Cluster{Spec: inMode(v1alpha1.AuthenticationAPI)})
	if mode() != v1alpha1.AuthenticationAPI || len(s.reload) != 1 {
		t.Errorf("on to %s, %d reloads", mode(), len(s.reload))
	}
}
