// SPDX-License-Identifier: Apache-2.0

package strictyaml_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/internal/platform/strictyaml"
)

// No document of a file is left out without a word, however it begins.
func TestSplit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                                   nil,
		"# nothing\n---\n# nothing\n":        nil,
		"a: 1\n":                             {"a: 1\n"},
		"a: 1\n---\nb: 2":                    {"a: 1\n", "---\nb: 2"},
		"a: 1\n--- # another\nb: 2\n":        {"a: 1\n", "--- # another\nb: 2\n"},
		"a: 1\n--- {b: 2}\n---\n":            {"a: 1\n", "--- {b: 2}\n"},
		"a: 1\n...\n# end\n---\r\nb: 2\r\n":  {"a: 1\n", "---\r\nb: 2\r\n"},
		"%YAML 1.1\n---\na: 1\n...\nb: 2\n":  {"---\na: 1\n", "b: 2\n"},
		"a: |\n  ---\n  text\n---not: mark":  {"a: |\n  ---\n  text\n---not: mark"},
		"---\n---\na: 1\n---\n\n \t\n# no\n": {"---\na: 1\n"},
	} {
		var got []string
		for _, d := range strictyaml.Split([]byte(text)) {
			got = append(got, string(d.Text))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestLineOf(t *testing.T) {
	t.Parallel()
	const text = `# before
first: 1
---
# a comment
spec:
  "a.b/c": [x, y]
  filters:
    tag:x/y:
    - on
  flow: {one: 1,
    two: [1,
      2]}
  again: &it
    deep: 1
  alias: *it
`
	d := strictyaml.Split([]byte(text))[1]
	for path, want := range map[string]int{
		"":                        0,
		"missing":                 0,
		"spec":                    5,
		"specs":                   0,
		"spec.missing.too":        5,
		"spec.a.b/c[1]":           6,
		"spec.a.b/c[7]":           6,
		"spec.filters[tag:x/y]":   8,
		"spec.filters.tag:x/y":    8,
		"spec.filters.tag:x/y[0]": 9,
		"spec.flow.two[1]":        12,
		"spec.alias.deep":         14,
		"spec.alias.other":        15,
	} {
		wrong := strictyaml.About(field.ErrorList{{Type: field.ErrorTypeInvalid, Field: path}})
		if got := d.LineOf(wrong[0]); got != want {
			t.Errorf("%s is in line %d, want %d", path, got, want)
		}
	}
	broken := strictyaml.Split([]byte("a: 1\n---\nb: 2\nc: [\n"))[1]
	if _, wrong := broken.JSON(); len(wrong) != 1 || broken.LineOf(wrong[0]) < 4 {
		t.Errorf("%+v", wrong)
	}
}
