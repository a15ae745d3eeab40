// SPDX-License-Identifier: Apache-2.0

package awsactions

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// leastEffects is how many operations of EKS have an effect that a story sees.
const leastEffects = 45

var upper = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// The page of effects says which story sees what an operation does. Stories are told from their source: the test is
// there, it has the step, and it calls the operation.
func TestEffectsAreSeenByStories(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/aws-effects.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../../test/stories/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d stories, %v", len(files), err)
	}
	var source strings.Builder
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(raw)
	}
	stories := source.String()
	actions := eksActions()
	var seen []string
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || strings.HasPrefix(cells[0], "---") || strings.TrimSpace(cells[0]) == "operation" {
			continue
		}
		operation, story, step := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
		n := slices.IndexFunc(actions, func(a Action) bool { return a.Name == operation })
		cli := strings.ToLower(upper.ReplaceAllString(operation, "$1-$2"))
		switch {
		case n < 0 || actions[n].Mark != Real:
			t.Errorf("%s is not an operation of EKS that is real", operation)
		case slices.Contains(seen, operation):
			t.Errorf("%s is there twice", operation)
		case !strings.Contains(stories, "func "+story+"(t *testing.T)"):
			t.Errorf("%s: there is no story %s", operation, story)
		case !strings.Contains(stories, `"`+step+`"`):
			t.Errorf("%s: no story has the step %q", operation, step)
		case !strings.Contains(stories, `"`+cli+`"`) && !strings.Contains(stories, `"`+operation+`"`):
			t.Errorf("%s: no story calls it", operation)
		case strings.TrimSpace(cells[3]) == "":
			t.Errorf("%s: the page does not say what is seen", operation)
		}
		seen = append(seen, operation)
	}
	if len(seen) < leastEffects {
		t.Errorf("the page has %d operations, want at least %d", len(seen), leastEffects)
	}
}
