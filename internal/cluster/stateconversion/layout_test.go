// SPDX-License-Identifier: Apache-2.0

package stateconversion

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/statedir"
)

func TestDecide(t *testing.T) {
	const release = "v0.2.0"
	for name, c := range map[string]struct {
		is   found
		want due
		err  string // in the error; no error if empty
	}{
		"a new directory": {want: due{first: 3}},
		"the first layout that can be converted": {
			is: found{layout: 4}, want: due{save: true, by: writer{Release: release, Layout: 7, From: 4}},
		},
		"the release before": {
			is:   found{6, writer{"v0.1.9", 6, "v0.1.8", 5}},
			want: due{first: 2, save: true, by: writer{release, 7, "v0.1.9", 6}},
		},
		"cut short": {
			is:   found{5, writer{release, 7, "v0.1.9", 4}},
			want: due{first: 1, by: writer{release, 7, "v0.1.9", 4}},
		},
		"cut short, and begun by the release before": {
			is:   found{5, writer{"v0.1.9", 6, "v0.1.8", 4}},
			want: due{first: 1, by: writer{release, 7, "v0.1.8", 4}},
		},
		"converted": {
			is:   found{7, writer{release, 7, "v0.1.9", 4}},
			want: due{first: 3, by: writer{release, 7, "v0.1.9", 4}},
		},
		"another release of the same layout": {
			is:   found{7, writer{"v0.2.1", 7, "v0.1.9", 4}},
			want: due{first: 3, by: writer{release, 7, "v0.1.9", 4}},
		},
		"nobody knows who wrote it": {
			is: found{layout: 7}, want: due{first: 3, by: writer{Release: release, Layout: 7, From: 7}},
		},
		"too old":              {is: found{layout: 3}, err: "made by an earlier Muster and cannot be converted: remove it with `muster down --delete`"},
		"newer":                {is: found{8, writer{"v0.3.0", 8, "v0.2.0", 7}}, err: "was written by Muster v0.3.0 (layout 8), and this is Muster v0.2.0, which knows layout 7: use Muster v0.3.0 or a newer one"},
		"newer, by nobody":     {is: found{layout: 9}, err: "was written by a newer Muster (layout 9), and this is Muster v0.2.0, which knows layout 7: use the Muster that wrote it or a newer one"},
		"newer, and cut short": {is: found{7, writer{"v0.3.0", 8, "v0.2.0", 7}}, err: "was written by Muster v0.3.0 (layout 8)"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decide(c.is, 3, release)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got the error %v, want %q", err, c.err)
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestLook(t *testing.T) {
	for name, c := range map[string]struct {
		first          bool // it has the file of one cluster
		layout, writer string
		want           found
		err            string
	}{
		"a new directory":        {},
		"of before the version":  {first: true, want: found{layout: 1}},
		"without a writer":       {layout: "4\n", want: found{layout: 4}},
		"with one":               {layout: "5\n", writer: `{"release":"v0.2.0+1234","layout":6,"from":4}`, want: found{5, writer{Release: "v0.2.0+1234", Layout: 6, From: 4}}},
		"of a later one":         {layout: "5\n", writer: `{"release":"v0.4.0","layout":60,"from":4,"more":"than is known"}`, want: found{5, writer{Release: "v0.4.0", Layout: 60, From: 4}}},
		"no number":              {layout: "two\n", err: `holds "two" and must hold the number of a layout; restore it from a backup`},
		"a number there was not": {layout: "0\n", err: `holds "0"`},
		"a damaged writer":       {layout: "5\n", writer: `{`, err: "written.json is damaged"},
		"a release that is none": {layout: "5\n", writer: `{"release":"../v1","layout":6,"from":4}`, err: `the releases "" and "../v1"`},
		"one before that is none": {
			layout: "5\n", writer: `{"release":"v1","before":"v1/..","layout":6,"from":4}`, err: `the releases "v1/.." and "v1"`,
		},
		"a layout back": {layout: "5\n", writer: `{"release":"v1","layout":5,"from":6}`, err: "from layout 6 to 5"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := statedir.Dir(t.TempDir())
			for path, content := range map[string]string{dir.Layout(): c.layout, writerFile(dir): c.writer, filepath.Join(string(dir), firstConfig): map[bool]string{true: "kind: Cluster\n"}[c.first]} {
				if content != "" {
					put(t, path, content)
				}
			}
			got, err := look(dir)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got the error %v, want %q", err, c.err)
			}
			if c.err == "" && got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// A new directory is this release's; nothing in it is to be converted.
func TestMark(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	if err := Of(dir).Mark(); err != nil {
		t.Fatal(err)
	}
	if plan, err := Of(dir).Check(); err != nil || plan.String() != "" {
		t.Errorf("what was just made: %+v, %v", plan, err)
	}
	for _, path := range []string{dir.Layout(), writerFile(dir)} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
}
