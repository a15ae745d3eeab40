// SPDX-License-Identifier: Apache-2.0

package muster_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// Other pages cite a decision by its number, so a number belongs to one page, and the page's first line has the number
// of its file.
func TestEachDecisionHasItsNumber(t *testing.T) {
	files, err := filepath.Glob("docs/decisions/*.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("found %d pages in docs/decisions only: the test looks in the wrong place", len(files))
	}
	pages := map[string]string{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.Base(file)] = string(raw)
	}
	for _, problem := range decisionProblems(pages) {
		t.Errorf("docs/decisions: %v", problem)
	}
}

var (
	decisionFile  = regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)
	decisionTitle = regexp.MustCompile(`^# (\d+)\. \S`)
)

// decisionProblems reports pages without a number, with a title of another number, and numbers of two pages. The pages
// have the names of their files.
func decisionProblems(pages map[string]string) []error {
	var problems []error
	byNumber := map[int]string{}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		file := decisionFile.FindStringSubmatch(name)
		if file == nil {
			problems = append(problems, fmt.Errorf("invalid file name %q: must be NNNN-words.md", name))
			continue
		}
		number, err := strconv.Atoi(file[1])
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
			continue
		}
		if other, ok := byNumber[number]; ok {
			problems = append(problems, fmt.Errorf("%s and %s have the number %d: give one of them the next free number", other, name, number))
		}
		byNumber[number] = name
		if title := decisionTitle.FindStringSubmatch(pages[name]); title == nil || title[1] != strconv.Itoa(number) {
			problems = append(problems, fmt.Errorf("%s must begin with %q", name, fmt.Sprintf("# %d. ", number)))
		}
	}
	return problems
}

func TestDecisionProblems(t *testing.T) {
	for name, c := range map[string]struct {
		pages map[string]string
		want  string
	}{
		"two pages":             {map[string]string{"0001-a.md": "# 1. A\n", "0002-b.md": "# 2. B\n"}, "[]"},
		"one number twice":      {map[string]string{"0001-a.md": "# 1. A\n", "0001-b.md": "# 1. B\n"}, "[0001-a.md and 0001-b.md have the number 1: give one of them the next free number]"},
		"title of another page": {map[string]string{"0002-b.md": "# 1. B\n"}, `[0002-b.md must begin with "# 2. "]`},
		"no number":             {map[string]string{"b.md": "# 1. B\n"}, `[invalid file name "b.md": must be NNNN-words.md]`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(decisionProblems(c.pages)); got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}
