// SPDX-License-Identifier: Apache-2.0

package promise

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

func page(t *testing.T) Figures {
	t.Helper()
	figures, err := Read(filepath.Join(root, "docs", "promises.md"))
	if err != nil {
		t.Fatal(err)
	}
	return figures
}

func source(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestEachPromiseHasARow(t *testing.T) {
	t.Parallel()
	figures := page(t)
	all := All()
	if made := strings.Count(source(t, "test/promise/promise.go"), `= Promise{"`); made != len(all) {
		t.Errorf("%d promises are made, and All returns %d", made, len(all))
	}
	for n, p := range all {
		if n >= len(figures) || figures[n].Promise != p {
			t.Fatalf("row %d of docs/promises.md is not that of %s", n+1, p)
		}
	}
	if len(figures) > len(all) {
		t.Errorf("no story can ask for %s: it is not among the constants", figures[len(all)].Promise)
	}
}

// TestEachRowHasAStory looks for the step that a row names: it is a file of stories, and asks for the promise.
func TestEachRowHasAStory(t *testing.T) {
	t.Parallel()
	names := constants(t)
	story := source(t, "test/stories/promises_test.go")
	for _, row := range page(t) {
		test, step, _ := strings.Cut(row.Story, "/")
		if !strings.Contains(story, "func "+test+"(") || !strings.Contains(story, `{"`+step+`", `) {
			t.Errorf("%s: there is no story %s", row.Promise, row.Story)
			continue
		}
		if !strings.Contains(source(t, "test/stories/promises_"+step+"_test.go"), "promise."+names[row.Promise]+",") {
			t.Errorf("%s: promises_%s_test.go does not ask for it", row.Promise, step)
		}
	}
}

// constants are the names of promises in Go.
func constants(t *testing.T) map[Promise]string {
	t.Helper()
	names := map[Promise]string{}
	for _, found := range regexp.MustCompile(`(?m)^\t([A-Z]\w+) += Promise\{"([a-z-]+)"\}$`).FindAllStringSubmatch(source(t, "test/promise/promise.go"), -1) {
		names[Promise{found[2]}] = found[1]
	}
	return names
}

var (
	link = regexp.MustCompile(`\[([^\]]*)\]\((?:docs/)?promises\.md(?:#([^)]*))?\)`)
	// A promise in prose: "within" and a figure that is no link.
	bare = regexp.MustCompile(`(?i)\bwithin (?:about )?(?:an?|one|two|three|four|five|ten|eleven|[0-9][0-9.]*)(?: seconds?| minutes?| ms| s)\b`)
)

// claims reports what is wrong with the promises of a text: links to rows that do not exist or say something else, and
// figures that no row has.
func claims(figures Figures, text string) (wrong []string, linked map[Promise]bool) {
	linked = map[Promise]bool{}
	text = strings.Join(strings.Fields(text), " ") // a line may break in the middle
	for _, found := range link.FindAllStringSubmatch(text, -1) {
		if found[2] == "" {
			continue // the page as a whole
		}
		row, err := figures.Of(Promise{found[2]})
		switch {
		case err != nil:
			wrong = append(wrong, found[0]+": "+err.Error())
		case row.Figure != found[1]:
			wrong = append(wrong, found[0]+": the row says "+row.Figure)
		}
		linked[row.Promise] = true
	}
	for _, found := range bare.FindAllString(text, -1) {
		wrong = append(wrong, `"`+found+`" is a promise: link its figure to a row of docs/promises.md, or say how long something is set to take`)
	}
	return wrong, linked
}

// TestPagesStateThePromises reads all pages that speak of the present. The changelog, benchmarks and decisions tell of
// the past.
func TestPagesStateThePromises(t *testing.T) {
	t.Parallel()
	figures := page(t)
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(paths) < 30 {
		t.Fatalf("%d pages, %v", len(paths), err)
	}
	stated := map[Promise]bool{}
	for _, path := range append(paths, filepath.Join(root, "README.md"), filepath.Join(root, "SECURITY.md")) {
		name := filepath.Base(path)
		if name == "promises.md" || name == "benchmarks.md" {
			continue
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		wrong, linked := claims(figures, string(raw))
		for _, one := range wrong {
			t.Errorf("%s: %s", name, one)
		}
		for p := range linked {
			stated[p] = true
		}
	}
	for _, row := range figures {
		if !stated[row.Promise] {
			t.Errorf("%s: no page states it", row.Promise)
		}
	}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	figures, err := Parse(top + closed)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"closed within [1 second](promises.md#port-closed).":      "",
		"closed within [1 second](docs/promises.md#port-closed).": "",
		"all [promises](promises.md)":                             "",
		"within a VPC, within seconds, a pause of two seconds":    "",
		"closed within [a second](promises.md#port-closed).":      "the row says 1 second",
		"closed within [11 seconds](promises.md#port-closed).":    "the row says 1 second",
		"open within [1 second](promises.md#port-open).":          `the page has no row "port-open"`,
		"closed within a second":                                  `"within a second" is a promise`,
		"closed within\n11 seconds":                               `"within 11 seconds" is a promise`,
		"closed Within about 0.7 s of it":                         `"Within about 0.7 s" is a promise`,
	} {
		wrong, _ := claims(figures, text)
		if got := strings.Join(wrong, "; "); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
