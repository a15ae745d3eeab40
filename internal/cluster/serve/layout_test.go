// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/statedir"
)

func TestLayout(t *testing.T) {
	for name, c := range map[string]struct {
		used   bool
		layout string // none if empty
		want   string // in the error; none if empty
	}{
		"a new directory":        {false, "", ""},
		"a start that was cut":   {false, "2\n", ""},
		"this version's":         {true, "2\n", ""},
		"of before the version":  {true, "", "made by Muster v0.1"},
		"of a later Muster":      {true, "3\n", "has layout version 3, and this Muster knows 2"},
		"no number":              {true, "two\n", `holds "two" and must hold 2`},
		"a number there was not": {true, "0\n", `holds "0" and must hold 2`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := statedir.Dir(t.TempDir())
			if c.used {
				write(t, dir.Config(), "kind: Cluster\n")
			}
			if c.layout != "" {
				write(t, dir.Layout(), c.layout)
			}
			err := checkLayout(dir)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestMarkLayout(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	if err := markLayout(dir); err != nil {
		t.Fatal(err)
	}
	write(t, dir.Config(), "kind: Cluster\n")
	if err := checkLayout(dir); err != nil {
		t.Errorf("what was just made is refused: %v", err)
	}
	if info, err := os.Stat(filepath.Join(string(dir), "layout")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
