// SPDX-License-Identifier: Apache-2.0

package planerollout

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/release/releasetest"
	"muster.dev/muster/internal/platform/statedir"
)

func TestReleaseThatServes(t *testing.T) {
	t.Parallel()
	at := func(slot int, phase Phase, folder string) Server {
		return Server{Slot: slot, Phase: phase, Spec: component.Spec{Name: component.APIServerName(slot), Path: filepath.Join("/opt/muster/bin", folder, "kube-apiserver")}}
	}
	for name, c := range map[string]struct {
		servers []Server
		want    string
	}{
		"one":                          {[]Server{at(0, Serving, "1.37")}, "1.37"},
		"of before there were several": {[]Server{at(0, Serving, "")}, "1.36"},
		"a newcomer":                   {[]Server{at(0, Serving, "1.36"), at(1, Newcomer, "1.37")}, "1.36"},
		"the other drains":             {[]Server{at(0, Draining, "1.36"), at(1, Serving, "1.37")}, "1.37"},
		"two, of which one is newer":   {[]Server{at(1, Serving, "1.37"), at(0, Serving, "1.36")}, "1.37"},
		"the first of all":             {[]Server{at(0, Newcomer, "1.36")}, ""},
		"a newer one that drains":      {[]Server{at(0, Draining, "1.37"), at(1, Serving, "1.36")}, "1.37"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "plane.json")
			raw, err := json.Marshal(Record{Servers: c.servers})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			got, ok, err := serves(path, releasetest.List())
			if err != nil || ok != (c.want != "") || got.Minor() != c.want {
				t.Errorf("%s, %v, %v", got.Minor(), ok, err)
			}
		})
	}
	if _, ok, err := serves(filepath.Join(t.TempDir(), "none"), releasetest.List()); ok || err != nil {
		t.Errorf("without a record: %v, %v", ok, err)
	}
}

// A record that is changed back while the API server of the upgrade begins to serve is too late.
func TestNoWayBack(t *testing.T) {
	t.Parallel()
	dir := statedir.Dir(t.TempDir()).Cluster("blue")
	if err := os.MkdirAll(string(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	spec := func(version string) v1alpha1.ClusterSpec { return v1alpha1.ClusterSpec{Version: version} }
	if is, next, err := Releases(dir, spec("1.36"), spec("1.37")); err != nil || is.Minor() != "1.36" || next.Minor() != "1.37" {
		t.Errorf("before it was started: %s to %s, %v", is.Minor(), next.Minor(), err)
	}
	raw, err := json.Marshal(Record{Servers: []Server{{Phase: Serving, Spec: component.Spec{Name: component.APIServer, Path: "/opt/muster/bin/1.37/kube-apiserver"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir.PlaneRecord(), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if runs, err := ReleaseToRun(dir, spec("1.36")); err != nil || runs.Minor() != "1.37" {
		t.Errorf("it is to run %s, %v", runs.Minor(), err)
	}
	if _, _, err := Releases(dir, spec("1.37"), spec("1.36")); err == nil {
		t.Error("it is taken back")
	}
	if err := os.WriteFile(dir.PlaneRecord(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReleaseToRun(dir, spec("1.36")); err == nil {
		t.Error("a damaged record says nothing")
	}
}
