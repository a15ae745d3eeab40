// SPDX-License-Identifier: Apache-2.0

package regexpsize_test

import (
	"regexp/syntax"
	"testing"

	"muster.dev/muster/internal/platform/regexpsize"
)

// The size is near that of the program that regexp makes, and never much less.
func TestOf(t *testing.T) {
	for _, expression := range []string{
		"", "a", "abc", `4\d\d`, `^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}$`, "a{1000}", "a{0,1000}", "a{900,}", "(a?){1000}", "((a|b){30}){30}", "(?i)abc|d*|e+", `[^\x00]{2,5}x`, "(?:a?){1000}(?:b?){1000}",
	} {
		got, err := regexpsize.Of(expression)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if n := len(program.Inst); got > 3*n+3 || n > 3*got+3 {
			t.Errorf("%s: about %d, and there are %d", expression, got, n)
		}
	}
	if _, err := regexpsize.Of("("); err == nil {
		t.Error("( is read")
	}
}
