// SPDX-License-Identifier: Apache-2.0

package shellquote_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/platform/shellquote"
)

func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		"":                               nil,
		" \t\n ":                         nil,
		"a":                              {"a"},
		" a  b\tc\n":                     {"a", "b", "c"},
		`--max-pods=29 --v 2`:            {"--max-pods=29", "--v", "2"},
		`'a b' "c d"`:                    {"a b", "c d"},
		`a'b c'd"e f"g`:                  {"ab cde fg"},
		`''`:                             {""},
		`"" a ''`:                        {"", "a", ""},
		`a\ b \'c\"`:                     {"a b", `'c"`},
		`'a\nb'`:                         {`a\nb`},
		`"a\nb\"c\\d\$e\` + "`" + `f"`:   {`a\nb"c\d$e` + "`f"},
		"a\\\nb":                         {"ab"},
		"\"a\\\nb\"":                     {"ab"},
		`--node-labels=a=b,c=d $HOME *`:  {"--node-labels=a=b,c=d", "$HOME", "*"},
		`$(reboot) ; rm -rf / # no > x|`: {"$(reboot)", ";", "rm", "-rf", "/", "#", "no", ">", "x|"},
		"größe='ü ß'":                    {"größe=ü ß"},
	} {
		got, err := shellquote.Split(line)
		if err != nil {
			t.Errorf("Split(%q): %v", line, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Split(%q) (-want +got):\n%s", line, diff)
		}
	}
}

func TestSplitRefuses(t *testing.T) {
	for line, want := range map[string]string{
		`a 'b`:                           "single quote",
		`a "b`:                           "double quote",
		`a "b\"`:                         "double quote",
		`a\`:                             "backslash",
		"a\x00b":                         "NUL",
		strings.Repeat("a", 128<<10+1):   "bytes long",
		strings.Repeat("a ", 1024) + "a": "more than 1024 words",
	} {
		if got, err := shellquote.Split(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Split(%.20q) is %q, %v; want an error about %s", line, got, err, want)
		}
	}
}

// A real shell is the judge of both directions.
func TestShellAgrees(t *testing.T) {
	for _, word := range []string{"", "a", "--x=a,b", "a b", `"`, `'`, `\`, `\\"`, "$HOME", "`id`", "a\tb", "*", "~", "a;b", "ü", "%h", "#a", "{a,b}", "!x", "<1%"} {
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+shellquote.Quote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("the shell reads %s as %q, %v; want %q", shellquote.Quote(word), out, err, word)
		}
	}
	for _, line := range []string{`a'b c'd"e f"g`, `"a\nb\"c"`, `'a\nb' c\ d`, `""`} {
		got, err := shellquote.Split(line)
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("/bin/sh", "-c", `printf '%s\n' `+line).Output()
		if err != nil || string(out) != strings.Join(got, "\n")+"\n" {
			t.Errorf("the shell makes %q of %s, %v; Split makes %q", out, line, err, got)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, line := range []string{"", "--max-pods=29 '--v 2'", `a\ b "c\"d"`, "'", `"\`, "$x `y`"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, err := shellquote.Split(line)
		if err != nil {
			return
		}
		quoted := make([]string, 0, len(got))
		for _, word := range got {
			quoted = append(quoted, shellquote.Quote(word))
		}
		again, err := shellquote.Split(strings.Join(quoted, " "))
		if err != nil {
			t.Fatalf("what Quote wrote cannot be read: %v", err)
		}
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("not the same after writing and reading again (-first +second):\n%s", diff)
		}
	})
}
