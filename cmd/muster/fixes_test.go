// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/explain/cause"
)

// Each command of muster that a fix of the catalogue names is there, and has the flags that the fix gives it.
func TestFixesAreCommands(t *testing.T) {
	t.Parallel()
	catalogue, err := cause.Default()
	if err != nil {
		t.Fatal(err)
	}
	call, flag := regexp.MustCompile(`\bmuster ([a-z][a-z -]*)`), regexp.MustCompile(`--([a-z][a-z-]+)`)
	seen := 0
	for _, c := range catalogue.All() {
		for _, part := range strings.FieldsFunc(c.Fix+";"+c.FixOnNode, func(r rune) bool { return strings.ContainsRune(";,:", r) }) {
			found := call.FindStringSubmatch(part)
			if found == nil {
				continue
			}
			seen++
			root := newRootCommand(terminal.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
			cmd, _, err := root.Find(strings.Fields(found[1]))
			if err != nil || cmd == root {
				t.Errorf("%s: there is no command %q: %v", c.ID, found[0], err)
				continue
			}
			_, own, _ := strings.Cut(part, found[0])
			own, _, _ = strings.Cut(found[0]+own, " -- ")
			for _, f := range flag.FindAllStringSubmatch(own, -1) {
				if cmd.Flag(f[1]) == nil {
					t.Errorf("%s: %s has no flag --%s", c.ID, cmd.CommandPath(), f[1])
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d commands were looked at", seen)
	}
}
