// SPDX-License-Identifier: Apache-2.0

package termsafe_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"muster.dev/muster/internal/platform/termsafe"
)

func TestLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                    "",
		"node-1, grüße, 節点 é": "node-1, grüße, 節点 é",
		`C:\temp "x" 'y' <&>`: `C:\temp "x" 'y' <&>`,
		"two\nlines\x1b[31m":  `two\nlines\x1b[31m`,
		"\b\t\x7f\u009b":      `\b\t\x7f\u009b`,
		"\u202eabc\u2028\xff": `\u202eabc\u2028` + "\ufffd",
		"a\u00a0b\ufeff":      `a\u00a0b\ufeff`,
	} {
		if got := termsafe.Line(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	if got, want := termsafe.Lines("a\n\tb\r\x1b[2J\n"), "a\n\tb\\r\\x1b[2J\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzLine(f *testing.F) {
	f.Add("node\x1b[31m\u202e\xff\n")
	f.Fuzz(func(t *testing.T, in string) {
		out := termsafe.Line(in)
		if !utf8.ValidString(out) || strings.ContainsFunc(out, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q became %q", in, out)
		}
		if again := termsafe.Line(out); again != out {
			t.Errorf("%q became %q, and that %q", in, out, again)
		}
		lines := termsafe.Lines(in)
		if strings.ContainsFunc(lines, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }) {
			t.Errorf("%q became the lines %q", in, lines)
		}
	})
}
