// SPDX-License-Identifier: Apache-2.0

package planerollout

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
			if got, ok := newest(c.servers, releasetest.List()); ok != (c.want != "") || got.Minor() != c.want {
				t.Errorf("%s, %v", got.Minor(), ok)
			}
		})
	}
}

// A cluster whose plane is upgraded, and taken back: what its record and its plane make of each version that it is asked
// for, and what it runs meanwhile.
func TestVersionsOf(t *testing.T) {
	t.Parallel()
	upgraded := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	up, back := &Move{"1.36", "1.37", upgraded}, &Move{"1.37", "1.36", upgraded}
	at := func(slot int, phase Phase, folder string) Server {
		return Server{Slot: slot, Phase: phase, Spec: component.Spec{Name: component.APIServerName(slot), Path: "/opt/muster/bin/" + folder + "/kube-apiserver"}}
	}
	serves := func(folder string) []Server { return []Server{at(0, Serving, folder)} }
	for name, c := range map[string]struct {
		record           Record
		days             float64 // since the upgrade
		recorded, wanted string
		runs             string // by the record that there is, whatever is wanted
		moves            bool
		says             string
	}{
		"before it was started":        {Record{}, 0, "1.36", "1.37", "1.36", true, ""},
		"nothing is asked":             {Record{Servers: serves("1.36")}, 0, "1.36", "", "1.36", false, ""},
		"an upgrade":                   {Record{Servers: serves("1.36")}, 0, "1.36", "1.37", "1.36", true, ""},
		"an upgrade that is under way": {Record{Servers: serves("1.36")}, 0, "1.37", "1.37", "1.37", false, ""},
		"it is set back in time":       {Record{Servers: serves("1.36")}, 0, "1.37", "1.36", "1.37", false, ""},
		"back at once":                 {Record{Servers: serves("1.37"), Move: up}, 0, "1.37", "1.36", "1.37", true, ""},
		"back on the seventh day":      {Record{Servers: serves("1.37"), Move: up}, 6.99, "1.37", "1.36", "1.37", true, ""},
		"back after seven days":        {Record{Servers: serves("1.37"), Move: up}, 7, "1.37", "1.36", "1.37", true, "spec.version: the control plane runs 1.37, and is not taken back to 1.36, as that is possible for 7 days after an upgrade, which was at 2026-11-20T12:00:00Z: keep 1.37"},
		"the clock went back":          {Record{Servers: serves("1.37"), Move: up}, -30, "1.37", "1.36", "1.37", true, ""},
		"back to what it never had":    {Record{Servers: serves("1.37")}, 0, "1.37", "1.36", "1.37", true, "spec.version: the control plane runs 1.37, and is not taken back to 1.36, as it was not upgraded from there: keep 1.37"},
		"back a second time":           {Record{Servers: serves("1.36"), Move: back}, 1, "1.36", "1.35", "1.36", true, "spec.version: the control plane runs 1.36, and is not taken back to 1.35, as it was taken back from 1.37 at 2026-11-20T12:00:00Z already: keep 1.36"},
		"up again":                     {Record{Servers: serves("1.36"), Move: back}, 1, "1.36", "1.37", "1.36", true, ""},
		"back by two":                  {Record{Servers: serves("1.37"), Move: up}, 0, "1.37", "1.35", "1.37", true, "spec.version: the control plane runs 1.37, and is taken back by one minor at most: to 1.36, not to 1.35"},
		"back is under way":            {Record{Servers: serves("1.37"), Move: up}, 1, "1.36", "1.36", "1.36", false, ""},
		"back, and not begun in time":  {Record{Servers: serves("1.37"), Move: up}, 8, "1.36", "1.36", "1.37", false, "spec.version: the control plane runs 1.37, and is not taken back to 1.36, as that is"},
		"back, and begun in time":      {Record{Servers: []Server{at(0, Draining, "1.37"), at(1, Serving, "1.36")}, Move: up}, 8, "1.36", "1.36", "1.36", false, ""},
		"back is taken back":           {Record{Servers: serves("1.37"), Move: up}, 1, "1.36", "1.37", "1.36", false, ""},
		"set back, and too late":       {Record{Servers: serves("1.37")}, 0, "1.36", "1.36", "1.37", false, "spec.version: the control plane runs 1.37, and is not taken back"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := statedir.Dir(t.TempDir()).Cluster("blue")
			raw, err := json.Marshal(c.record)
			if err := errors.Join(err, os.MkdirAll(string(dir), 0o700)); err != nil {
				t.Fatal(err)
			}
			if len(c.record.Servers) > 0 {
				if err := os.WriteFile(dir.PlaneRecord(), raw, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			now := upgraded.Add(time.Duration(c.days * 24 * float64(time.Hour)))
			recorded, wanted := v1alpha1.ClusterSpec{Version: c.recorded}, v1alpha1.ClusterSpec{Version: c.wanted}
			if runs, err := ReleaseToRun(dir, recorded, now); err != nil || runs.Minor() != c.runs {
				t.Errorf("it is to run %s, %v", runs.Minor(), err)
			}
			backTo := ""
			if strings.HasPrefix(name, "back") && c.record.Move == up && c.days < 7 {
				backTo = "1.36"
			}
			if got := Back(dir, now); !strings.Contains(name, "clock") && got != backTo {
				t.Errorf("it can be taken back to %q", got)
			}
			v, err := VersionsOf(dir, recorded, wanted, now)
			switch {
			case c.says == "" && (err != nil || v.Moves() != c.moves || v.Recorded.Minor() != c.recorded || c.wanted != "" && v.Next.Minor() != c.wanted):
				t.Errorf("%+v, %v", v, err)
			case c.says != "" && (err == nil || !strings.HasPrefix(err.Error(), c.says)):
				t.Error(err)
			}
			if err := os.WriteFile(dir.PlaneRecord(), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := ReleaseToRun(dir, recorded, now); err == nil {
				t.Error("a damaged record says nothing")
			}
			if _, err := VersionsOf(dir, recorded, wanted, now); err == nil {
				t.Error("a damaged record refuses nothing")
			}
		})
	}
}
