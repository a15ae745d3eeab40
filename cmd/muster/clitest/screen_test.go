// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The screen does what terminals do.
func TestScreen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		written string
		want    []string
	}{
		"lines":                        {"a\r\nb\r\n", []string{"a", "b", ""}},
		"a line feed keeps the column": {"ab\nc", []string{"ab", "  c"}},
		"a long line":                  {"abcdefghijkl", []string{"abcdefghij", "kl"}},
		"a full line":                  {"abcdefghij\r\n", []string{"abcdefghij", ""}},
		"wide letters":                 {"節点の名節点", []string{"節点の名節", "点"}},
		"a wide letter at the end":     {"123456789節", []string{"123456789", "節"}},
		"marks":                        {"e\u0301e\u0301", []string{"e\u0301e\u0301"}},
		"colours":                      {"\x1b[32mgood\x1b[0m!", []string{"good!"}},
		"up, and erased below":         {"a\r\nb\r\nc\r\n\x1b[2A\x1b[Jx", []string{"a", "x"}},
		"not above the screen":         {"a\r\nb\r\nc\r\nd\r\n\x1b[9Ax", []string{"a", "b", "x", "d", ""}},
		"over what is there":           {"abc\rx", []string{"xbc"}},
		"the rest of a line":           {"abc\rx\x1b[K", []string{"x"}},
	} {
		s := NewScreen(10, 3)
		for i := range len(test.written) { // bytes may come one by one
			_, _ = s.Write([]byte{test.written[i]})
		}
		got := s.Lines()
		if name == "not above the screen" {
			got = append(got, "") // the last line is empty, and below the cursor
		}
		if diff := cmp.Diff(test.want, got); diff != "" || len(s.Problems) > 0 {
			t.Errorf("%s (-want +got), problems %q:\n%s", name, s.Problems, diff)
		}
	}
}

func TestScreenIsResized(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reflows bool
		want    []string
	}{
		{true, []string{"abcd", "efgh", "ij", "xy", ""}},
		{false, []string{"abcd", "xy", ""}},
	} {
		s := NewScreen(10, 9)
		s.Reflows = test.reflows
		_, _ = s.Write([]byte("abcdefghij\r\nxy\r\n"))
		s.Resize(4, 9)
		if diff := cmp.Diff(test.want, s.Lines()); diff != "" {
			t.Errorf("narrower, reflows %v (-want +got):\n%s", test.reflows, diff)
		}
		s.Resize(20, 9)
		if diff := cmp.Diff([]string{"abcdefghij", "xy", ""}, s.Lines()); test.reflows && diff != "" {
			t.Errorf("wider (-want +got):\n%s", diff)
		}
	}
}

func TestScreenOfWhatNobodyShouldWrite(t *testing.T) {
	t.Parallel()
	s := NewScreen(10, 3)
	_, _ = fmt.Fprint(s, "\x1b]0;title\a \x1b[2J \u009b \x7f")
	if len(s.Problems) < 4 {
		t.Errorf("problems %q", s.Problems)
	}
}
