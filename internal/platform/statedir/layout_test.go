// SPDX-License-Identifier: Apache-2.0

package statedir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/statedir"
)

func TestLayout(t *testing.T) {
	for name, c := range map[string]struct {
		first  bool   // it has the file of one cluster
		layout string // no file of a layout if empty
		want   string // in the error; no error if empty
	}{
		"a new directory":         {false, "", ""},
		"this version's":          {false, "4\n", ""},
		"of before the version":   {true, "", "made by an earlier Muster"},
		"of one cluster":          {true, "2\n", "made by an earlier Muster"},
		"before VPCs had subnets": {false, "3\n", "made by an earlier Muster"},
		"of a later Muster":       {false, "5\n", "has layout version 5, and this Muster knows 4"},
		"no number":               {false, "two\n", `holds "two" and must hold 4`},
		"a number there was not":  {false, "0\n", `holds "0" and must hold 4`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := statedir.Dir(t.TempDir())
			if c.first {
				if err := os.WriteFile(filepath.Join(string(dir), "muster.yaml"), []byte("kind: Cluster\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.layout != "" {
				if err := os.WriteFile(dir.Layout(), []byte(c.layout), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := statedir.CheckLayout(dir)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestMarkLayout(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	if err := statedir.MarkLayout(dir); err != nil {
		t.Fatal(err)
	}
	if err := statedir.CheckLayout(dir); err != nil {
		t.Errorf("what was just made is refused: %v", err)
	}
	if info, err := os.Stat(filepath.Join(string(dir), "layout")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
