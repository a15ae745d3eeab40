// SPDX-License-Identifier: Apache-2.0

package cause_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/release"
)

// The message that a cause quotes is in the source of the version that Muster builds: an upgrade that words it
// otherwise fails here.
func TestUpstreamMessages(t *testing.T) {
	t.Parallel()
	sources := newSources(t)
	seen := 0
	for _, c := range catalogue(t).All() {
		for _, u := range c.Upstream {
			dir := sources.dir(t, u.Module)
			if dir == "" {
				continue
			}
			raw, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(u.File)))
			if err != nil {
				t.Errorf("%s: %v", c.ID, err)
				continue
			}
			if seen++; !strings.Contains(string(raw), u.Text) {
				t.Errorf("%s: %s of %s does not have %q", c.ID, u.File, filepath.Base(dir), u.Text)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d messages were looked for", seen)
	}
}

// sources are where the source of modules is.
type sources struct {
	cache, goroot string
	requirements  []string // the text of go.mod files
}

func newSources(t *testing.T) sources {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	if len(lines) != 2 {
		t.Fatalf("go env says %q", out)
	}
	s := sources{cache: lines[0], goroot: lines[1]}
	root := filepath.Join("..", "..", "..")
	for _, file := range []string{filepath.Join("kubernetes", release.Default().Minor(), "go.mod"), "go.mod"} {
		raw, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		s.requirements = append(s.requirements, string(raw))
	}
	return s
}

// dir is the directory of a module's source, in the version that the programs of the default minor are built from; "" if
// that is not on this machine, which has built nothing then.
func (s sources) dir(t *testing.T, module string) string {
	t.Helper()
	if module == "std" {
		return filepath.Join(s.goroot, "src")
	}
	name := regexp.QuoteMeta(module)
	replaced, required := regexp.MustCompile(`(?m)^\s*`+name+` => `+name+` (v\S+)`), regexp.MustCompile(`(?m)^\s*`+name+` (v\S+)`)
	for _, text := range s.requirements {
		found := replaced.FindStringSubmatch(text)
		if found == nil {
			found = required.FindStringSubmatch(text)
		}
		if found == nil {
			continue
		}
		dir := filepath.Join(s.cache, filepath.FromSlash(module)+"@"+found[1])
		if _, err := os.Stat(dir); err != nil {
			t.Logf("%s is not in the cache of modules, and is not looked at", filepath.Base(dir))
			return ""
		}
		return dir
	}
	t.Errorf("no go.mod requires %s", module)
	return ""
}
