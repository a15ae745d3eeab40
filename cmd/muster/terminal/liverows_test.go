// SPDX-License-Identifier: Apache-2.0

package terminal_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/platform/termsafe"
)

// longRows are rows of all kinds: long ones, with wide letters, with what strangers wrote.
func longRows(round int) []terminal.Row {
	return []terminal.Row{
		{Sign: "…", Color: 33, Text: fmt.Sprintf("round %d: ", round) + strings.Repeat("waiting for etcd, ", 20)},
		{Sign: "✓", Color: 32, Text: "short"},
		{Text: strings.Repeat("節点e\u0301", 60)},
		{Sign: "…", Text: "hostile \x1b[2J\x1b]0;title\a\u202e\r\nand a second line\t" + strings.Repeat("x", 300)},
	}
}

// Whatever the width, a row is a line, and nothing is left of the rows before: after a resize neither.
func TestLiveRowsLeaveNothing(t *testing.T) {
	for _, columns := range []int{60, 80, 200} {
		for _, reflows := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d columns, reflows %v", columns, reflows), func(t *testing.T) {
				screen := clitest.NewTerminal(t, columns, 50)
				screen.Reflow(reflows)
				const above = 20
				for i := range above {
					_, _ = fmt.Fprintf(screen.File, "above %d\n", i)
				}
				rows := terminal.NewMovingRows(screen.File)
				check := func(when string, want []terminal.Row, columns int) {
					t.Helper()
					lines := screen.Lines(t)
					eaten := above + len(want) + 1 - len(lines)
					if eaten != 0 && (reflows || eaten < 0) {
						t.Fatalf("%s: %d lines, want %d:\n%s", when, len(lines), above+len(want)+1, strings.Join(lines, "\n"))
					}
					for i := range above - eaten {
						if lines[i] != fmt.Sprintf("above %d", i) {
							t.Errorf("%s: line %d is %q", when, i, lines[i])
						}
					}
					for i, row := range want {
						line := lines[above-eaten+i]
						if start := strings.TrimSpace(row.Sign + " " + row.Text)[:4]; !strings.HasPrefix(line, start) || termsafe.Width(line) >= columns {
							t.Errorf("%s: row %d is %q", when, i, line)
						}
					}
				}
				for round := range 10 {
					rows.Draw(longRows(round))
					check("drawn", longRows(round), columns)
				}
				rows.Draw(longRows(0)[:2])
				check("fewer rows", longRows(0)[:2], columns)
				for _, columns := range []int{30, 120, 45, 60, 200} {
					rows.Draw(longRows(0))
					screen.Resize(t, columns, 50)
					rows.Draw(longRows(0))
					check(fmt.Sprintf("%d columns", columns), longRows(0), columns)
				}
				rows.Leave()
				rows.Draw([]terminal.Row{{Text: "below"}})
				lines := screen.Lines(t)
				if lines[len(lines)-2] != "below" || !strings.HasPrefix(lines[len(lines)-3], "… hostile") {
					t.Errorf("below the rows: %q", lines)
				}
			})
		}
	}
}

// The cursor cannot go up to rows that were scrolled off.
func TestLiveRowsOfALowTerminal(t *testing.T) {
	screen := clitest.NewTerminal(t, 80, 6)
	rows := terminal.NewMovingRows(screen.File)
	var many []terminal.Row
	for i := range 20 {
		many = append(many, terminal.Row{Text: fmt.Sprintf("row %d", i)})
	}
	for range 5 {
		many[0].Text += "."
		rows.Draw(many)
	}
	want := []string{"row 0.....", "row 1", "row 2", "row 3", "… and 16 more", ""}
	if diff := cmp.Diff(want, screen.Lines(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Rows move on terminals alone, and not on those of CI, whose logs keep whatever is written.
func TestRowsMove(t *testing.T) {
	screen := clitest.NewTerminal(t, 80, 24)
	for _, test := range []struct {
		name, value string
		want        bool
	}{
		{"CI", "", true},
		{"CI", "false", true},
		{"CI", "true", false},
		{"CI", "1", false},
		{"CI", "woodpecker", false},
		{"TERM", "dumb", false},
	} {
		t.Run(test.name+"="+test.value, func(t *testing.T) {
			t.Setenv(test.name, test.value)
			if got := terminal.NewMovingRows(screen.File) != nil; got != test.want {
				t.Errorf("rows move: %v, want %v", got, test.want)
			}
		})
	}
	if terminal.NewMovingRows(&bytes.Buffer{}) != nil {
		t.Error("rows move in what is no terminal")
	}
}

// Signs have colours unless nobody wants any (https://no-color.org).
func TestRowsInColour(t *testing.T) {
	for noColour, want := range map[string]string{"": "\x1b[32m✓\x1b[0m ready\n", "1": "✓ ready\n"} {
		t.Setenv("NO_COLOR", noColour)
		var out bytes.Buffer
		rows := terminal.NewLiveRows(&out)
		row := []terminal.Row{{Sign: "✓", Color: 32, Text: "ready"}}
		rows.Draw(row)
		rows.Draw(row) // which nobody needs to see again
		if out.String() != want {
			t.Errorf("NO_COLOR=%s: %q", noColour, out.String())
		}
	}
}

func TestWaitProgress(t *testing.T) {
	var out bytes.Buffer
	p := terminal.NewWaitProgress(&out)
	for _, text := range []string{"one", "one", "two\nand \x1b[31mred", "one"} {
		p.Show(text)
	}
	p.End()
	if got, want := out.String(), "one\ntwo; and \\x1b[31mred\none\n"; got != want {
		t.Errorf("in a pipe: %q, want %q", got, want)
	}
	screen := clitest.NewTerminal(t, 20, 24)
	p = terminal.NewWaitProgress(screen.File)
	for _, text := range []string{"one", strings.Repeat("long ", 100), strings.Repeat("waiting for the end ", 100)} {
		p.Show(text)
	}
	screen.Resize(t, 15, 24)
	p.Show(strings.Repeat("waiting for the end ", 100))
	p.End()
	p.Show("the next")
	if diff := cmp.Diff([]string{"waiting for t…", "the next", ""}, screen.Lines(t)); diff != "" {
		t.Errorf("on a terminal (-want +got):\n%s", diff)
	}
}
