// SPDX-License-Identifier: Apache-2.0

package muster_test

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// house is the structure that ARCHITECTURE.md tells: the only list of packages there is.
type house struct {
	wings    [][]string        // from the lowest; wings of one level do not import each other
	rings    []string          // from the lowest
	packages map[string]string // "platform/decision" → its ring
}

var (
	wingLine    = regexp.MustCompile(`^    internal/([a-z]+)/ +\S`)
	packageLine = regexp.MustCompile(`^      ([a-z]+) +([a-z0-9]+(?:/[a-z0-9]+)?) +\S`)
)

// readHouse reads the two laws and the list of packages from the page. Every problem of the page is an error of its
// own.
func readHouse(page string) (house, []error) {
	h := house{packages: map[string]string{}}
	var problems []error
	var laws []string
	wing, names := "", map[string]string{}
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if law, ok := strings.CutPrefix(line, "    "); ok && strings.Contains(law, " < ") && !strings.HasPrefix(law, " ") {
			laws = append(laws, law)
			continue
		}
		if m := wingLine.FindStringSubmatch(line); m != nil {
			wing = m[1]
			continue
		}
		m := packageLine.FindStringSubmatch(line)
		if m == nil || wing == "" {
			if line != "" {
				wing = ""
			}
			continue
		}
		dir := wing + "/" + m[2]
		if _, again := h.packages[dir]; again {
			problems = append(problems, fmt.Errorf("%s is listed twice", dir))
		}
		h.packages[dir] = m[1]
		if other, again := names[path.Base(dir)]; again {
			problems = append(problems, fmt.Errorf("package names are unique over all wings: %s and %s are not", other, dir))
		}
		names[path.Base(dir)] = dir
	}
	if len(laws) != 2 {
		return h, append(problems, fmt.Errorf("found %d laws (lines like `a < b`), want two: the wings and the rings", len(laws)))
	}
	for level := range strings.SplitSeq(laws[0], " < ") {
		h.wings = append(h.wings, strings.Fields(level))
	}
	h.rings = strings.Split(laws[1], " < ")
	for dir, ring := range h.packages {
		wing, _, _ := strings.Cut(dir, "/")
		if h.level(wing) < 0 {
			problems = append(problems, fmt.Errorf("wing %s is in the list and not in the law", wing))
		}
		if !slices.Contains(h.rings, ring) {
			problems = append(problems, fmt.Errorf("%s: ring %q is not one of %v", dir, ring, h.rings))
		}
	}
	return h, problems
}

// level is the place of a wing in the law, or -1.
func (h house) level(wing string) int {
	return slices.IndexFunc(h.wings, func(level []string) bool { return slices.Contains(level, wing) })
}

// ring is the place of a package of internal/ in the law of the rings, or -1.
func (h house) ring(dir string) int { return slices.Index(h.rings, h.packages[dir]) }

// part is the package that a part's own subpackages belong to.
func part(dir string) string {
	wing, rest, _ := strings.Cut(dir, "/")
	name, _, _ := strings.Cut(rest, "/")
	return wing + "/" + name
}

// refuses says why a package of internal/ must not import another one, or "". Both are named without "internal/".
func (h house) refuses(from, to string) string {
	fromWing, _, _ := strings.Cut(from, "/")
	toWing, _, _ := strings.Cut(to, "/")
	switch {
	case fromWing != toWing && h.level(fromWing) == h.level(toWing):
		return fmt.Sprintf("wings %s and %s do not know each other", fromWing, toWing)
	case h.level(toWing) > h.level(fromWing):
		return fmt.Sprintf("wing %s comes after %s", toWing, fromWing)
	case h.ring(to) > h.ring(from):
		return fmt.Sprintf("the package is in ring %s, and the import in %s, which comes later", h.packages[from], h.packages[to])
	case h.packages[from] == "part" && h.packages[to] == "part" && part(from) != part(to):
		return "parts meet on the wire"
	case to == "cluster/serve":
		return "commands alone import it"
	}
	return ""
}

func standing(t *testing.T) house {
	t.Helper()
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	h, problems := readHouse(string(page))
	for _, problem := range problems {
		t.Errorf("ARCHITECTURE.md: %v", problem)
	}
	if len(h.packages) < 50 || len(h.wings) < 3 {
		t.Fatalf("ARCHITECTURE.md lists %d packages in %d levels: the list was not understood", len(h.packages), len(h.wings))
	}
	return h
}

func TestThePageNamesEveryPackage(t *testing.T) {
	h := standing(t)
	there := map[string]bool{}
	for _, s := range sources(t) {
		if dir, ok := strings.CutPrefix(s.dir, "internal/"); ok && !s.test {
			there[dir] = true
		}
	}
	for _, problem := range h.differs(there) {
		t.Error(problem)
	}
}

// differs says which packages the page misses and which it invents.
func (h house) differs(there map[string]bool) []string {
	var problems []string
	for dir := range there {
		if _, ok := h.packages[dir]; !ok {
			problems = append(problems, fmt.Sprintf("internal/%s is not in ARCHITECTURE.md: add a line with its ring", dir))
		}
	}
	for dir := range h.packages {
		if !there[dir] {
			problems = append(problems, fmt.Sprintf("ARCHITECTURE.md names internal/%s, which does not exist", dir))
		}
	}
	slices.Sort(problems)
	return problems
}

func TestThePageNamesEveryDirectory(t *testing.T) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() && !strings.HasPrefix(name, ".") && !slices.Contains([]string{"internal", "bin", "dist"}, name) && !strings.Contains(string(page), "\n    "+name+"/ ") {
			t.Errorf("ARCHITECTURE.md does not name %s/", name)
		}
	}
}

// example is a small house with one of everything.
const example = `
    low < left right < high

    pure < edge < part < assembly

    internal/low/      text
      pure      a      text
      edge      b      text

    internal/left/     text
      part      c      text
      part      c/sub  text
      part      d      text

    internal/right/    text
      part      e      text

    internal/high/     text
      edge      f      text
      assembly  g      text
`

func TestRefusedImports(t *testing.T) {
	h, problems := readHouse(example)
	if problems != nil {
		t.Fatal(problems)
	}
	for _, c := range []struct{ from, to, want string }{
		{"low/b", "low/a", ""},
		{"low/a", "low/b", "comes later"},
		{"left/c", "low/b", ""},
		{"low/b", "left/c", "wing left comes after low"},
		{"left/c", "right/e", "do not know each other"},
		{"left/c", "left/d", "parts meet on the wire"},
		{"left/c", "left/c/sub", ""},
		{"high/g", "left/c", ""},
		{"high/f", "left/c", "comes later"},
		{"high/g", "high/f", ""},
	} {
		if got := h.refuses(c.from, c.to); got == "" != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s imports %s: %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

func TestProblemsOfThePage(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"listed twice":      {"      edge      b      text", "      edge      a      text", "low/a is listed twice"},
		"a name twice":      {"      part      e      text", "      part      d      text", "unique"},
		"an unknown ring":   {"      edge      b", "      egde      b", `ring "egde"`},
		"an unknown wing":   {"    internal/right/", "    internal/wrong/", "wing wrong"},
		"no law":            {" < high", "", ""},
		"the law is absent": {"    pure < edge < part < assembly\n", "", "found 1 laws"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := readHouse(strings.Replace(example, c.old, c.new, 1))
			if text := fmt.Sprint(problems); len(problems) == 0 || !strings.Contains(text, c.want) {
				t.Errorf("problems: %v, want one with %q", problems, c.want)
			}
		})
	}
}

func TestDifferencesOfThePage(t *testing.T) {
	h, _ := readHouse(example)
	there := map[string]bool{"low/a": true, "low/new": true}
	problems := strings.Join(h.differs(there), "\n")
	for _, want := range []string{"internal/low/new is not in ARCHITECTURE.md", "names internal/left/c, which does not exist"} {
		if !strings.Contains(problems, want) {
			t.Errorf("problems:\n%s\nwant one with %q", problems, want)
		}
	}
	if strings.Contains(problems, "internal/low/a") {
		t.Errorf("a package that is listed is a problem:\n%s", problems)
	}
}
