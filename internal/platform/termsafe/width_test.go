// SPDX-License-Identifier: Apache-2.0

package termsafe_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"muster.dev/muster/internal/platform/termsafe"
)

func TestWidth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"":                   0,
		"node-1":             6,
		"grüße":              5,
		"節点":                 4,
		"ｗｉｄｅ":               8,
		"e\u0301t\u0301":     2,
		"\u0301":             0,
		"…✓":                 2,
		"🚀 up":               5,
		"❤\ufe0f!":           3,
		"각":                  2,
		"\u1100\u1161\u11a8": 2, // the same syllable by its parts
	} {
		if got := termsafe.Width(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text    string
		columns int
		want    string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"abcd", 1, "…"},
		{"abcd", 0, ""},
		{"abcd", -1, ""},
		{"grüße", 5, "grüße"},
		{"grüßen", 5, "grüß…"},
		{"節点の名", 8, "節点の名"},
		{"節点の名", 7, "節点の…"},
		{"節点の名", 6, "節点…"}, // half of a wide letter is not shown
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"},
	} {
		if got := termsafe.Cut(test.text, test.columns); got != test.want {
			t.Errorf("%q in %d columns is %q, want %q", test.text, test.columns, got, test.want)
		}
	}
}

func TestHeight(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text          string
		columns, want int
	}{
		{"", 10, 1},
		{"abcdef", 6, 1},
		{"abcdef", 5, 2},
		{"abcdef", 2, 3},
		{"abcdef", 1, 6},
		{"節点の名", 8, 1},
		{"節点の名", 5, 2},
		{"節点の名", 3, 4}, // one column of each line stays empty
		{"節", 1, 1},
	} {
		if got := termsafe.Height(test.text, test.columns); got != test.want {
			t.Errorf("%q in %d columns takes %d lines, want %d", test.text, test.columns, got, test.want)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("節e\u0301❤\ufe0f\u0301 x", 4)
	f.Fuzz(func(t *testing.T, text string, columns int) {
		text = termsafe.Line(text)
		cut := termsafe.Cut(text, columns)
		whole := strings.HasPrefix(text, strings.TrimSuffix(cut, "…"))
		if termsafe.Width(cut) > max(columns, 0) || !utf8.ValidString(cut) || !whole || termsafe.Width(text) <= columns && cut != text {
			t.Errorf("%q in %d columns became %q", text, columns, cut)
		}
	})
}
