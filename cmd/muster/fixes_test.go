// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
)

// Each command of muster's in the fixes of the catalogue is one that there is, with its flags and number of arguments: as it
// is told where there is one cluster, and where there are several.
func TestFixesAreCommands(t *testing.T) {
	t.Parallel()
	catalogue, err := cause.Default()
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("`[^`]*`")
	names := strings.NewReplacer("$MACHINE", "i-1", "$NODE", "node-1", "$GROUP", "default", "$CLUSTER", "home", "$NAME", "web --namespace shop")
	seen := 0
	for _, c := range catalogue.All() {
		several := diagnosis.FixIn(c.Fix, "home")
		for _, quoted := range commands.FindAllString(several, -1) {
			if strings.Contains(quoted, "muster ") && !strings.Contains(quoted, "--cluster home") || strings.HasPrefix(quoted, "`kubectl ") && !strings.Contains(quoted, "--context ") {
				t.Errorf("%s: of several clusters, %s is for none", c.ID, quoted)
			}
		}
		for _, fix := range []string{c.Fix, c.FixOnNode, several} {
			if strings.Count(fix, "`")%2 != 0 || strings.Contains(commands.ReplaceAllString(fix, ""), "muster explain ") {
				t.Errorf("%s: a command is not quoted: %s", c.ID, fix)
			}
			for _, quoted := range commands.FindAllString(names.Replace(fix), -1) {
				for one := range strings.SplitSeq(strings.Trim(quoted, "`"), " | ") {
					if words := strings.Fields(one); words[0] == "muster" {
						seen++
						parses(t, string(c.ID), words[1:])
					}
				}
			}
		}
	}
	if seen < 60 {
		t.Errorf("%d commands were looked at", seen)
	}
}

// parses looks a command up, and reads its flags and arguments. Nothing is run.
func parses(t *testing.T, id string, words []string) {
	t.Helper()
	found, rest, err := newRootCommand(terminal.Streams{Out: io.Discard, Err: io.Discard}).Find(words)
	if err != nil || !found.Runnable() {
		t.Errorf("%s: there is no command muster %s: %v", id, strings.Join(words, " "), err)
		return
	}
	if err := found.ParseFlags(rest); err != nil {
		t.Errorf("%s: muster %s: %v", id, strings.Join(words, " "), err)
		return
	}
	if err := found.ValidateArgs(found.Flags().Args()); err != nil {
		t.Errorf("%s: muster %s: %v", id, strings.Join(words, " "), err)
	}
}
