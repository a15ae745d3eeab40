// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/platform/release"
)

// page is a page of the documentation whose commands are run in their order, and whose outputs are compared with what
// comes of them.
type page struct {
	name  string
	least int      // how many commands it shows at least
	dir   string   // where they run
	pairs []string // texts of the page and their replacements here, in turn
	// unsteady are lines that are there or not, by how fast things go and on which machine.
	unsteady *regexp.Regexp
	// settles are commands that show what is still on its way: their readers are slower than this test, which asks
	// again for twenty seconds.
	settles *regexp.Regexp
	// there runs commands of root on another host, which the page shows with #. They may read the token that was drawn
	// last.
	there func(line, token string) (string, error)
}

// readPage is the text of a page.
func readPage(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// follow does what a page shows. Tokens and hashes are drawn: those of the page stand for those that come of it.
func (i *installation) follow(p page) {
	i.t.Helper()
	commands := transcripts(readPage(i.t, p.name))
	if len(commands) < p.least {
		i.t.Fatalf("%s shows %d commands only", p.name, len(commands))
	}
	if p.dir == "" {
		p.dir = i.t.TempDir()
	}
	wholeToken := regexp.MustCompile(`\b([a-z0-9]{6})\.([a-z0-9]{16})\b`)
	pairs, token := p.pairs, ""
	for _, c := range commands {
		line := strings.NewReplacer(pairs...).Replace(c.line)
		var out string
		var err error
		if c.root {
			out, err = p.there(line, token)
		} else {
			out, err = i.shell(p.dir, line)
		}
		if p.settles != nil && p.settles.MatchString(line) {
			shown := shape(strings.NewReplacer(pairs...).Replace(c.output))
			for until := time.Now().Add(20 * time.Second); time.Now().Before(until) && !slices.Equal(shown, shape(out)); {
				time.Sleep(500 * time.Millisecond) //nolint:forbidigo // it polls with a deadline
				out, err = i.shell(p.dir, line)
			}
		}
		if err != nil {
			i.t.Errorf("%s: %v", line, err)
		}
		if drawn := wholeToken.FindString(out); drawn != "" {
			token = drawn
		}
		for _, drawn := range []*regexp.Regexp{wholeToken, regexp.MustCompile(`sha256:[0-9a-f]{64}`)} { // and pins
			shown, here := drawn.FindStringSubmatch(c.output), drawn.FindStringSubmatch(out)
			for n := range min(len(shown), len(here)) {
				pairs = append(pairs, shown[n], here[n])
			}
		}
		want := strings.NewReplacer(pairs...).Replace(c.output)
		if p.unsteady != nil {
			want, out = p.unsteady.ReplaceAllString(want, ""), p.unsteady.ReplaceAllString(out, "")
		}
		if diff := cmp.Diff(shape(want), shape(out)); diff != "" {
			i.t.Errorf("%s\nprints\n%s\nthe page's (-) and this (+) differ in more than numbers:\n%s", line, out, diff)
		}
	}
}

// shell runs one command of a page, as its reader would.
func (i *installation) shell(dir, line string) (string, error) {
	ctx, cancel := context.WithTimeout(i.t.Context(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = dir, append(i.environment(), "PATH="+i.bin+":"+filepath.Join(i.bin, release.Default().Folder)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// transcript is a command that a page shows, and what it prints there.
type transcript struct {
	line, output string
	root         bool // of another host
}

// transcripts are the commands of a page: indented lines that begin with a dollar, or # on another host, as a shell
// shows them. Lines that begin with > continue a command. The other indented lines that follow are what it prints.
func transcripts(text string) []transcript {
	var all []transcript
	open := false
	for line := range strings.Lines(text) {
		text, indented := strings.CutPrefix(line, "    ")
		command, begins := strings.CutPrefix(text, "$ ")
		root, asRoot := strings.CutPrefix(text, "# ")
		more, continued := strings.CutPrefix(text, "> ")
		switch {
		case indented && begins:
			all = append(all, transcript{line: strings.TrimSpace(command)})
			open = true
		case indented && asRoot:
			all = append(all, transcript{line: strings.TrimSpace(root), root: true})
			open = true
		case indented && open && continued && all[len(all)-1].output == "":
			all[len(all)-1].line += "\n" + strings.TrimRight(more, "\n")
		case text == "\n" && open:
			all[len(all)-1].output += text
		case indented && open:
			all[len(all)-1].output += text
		default:
			open = false
		}
	}
	return all
}
