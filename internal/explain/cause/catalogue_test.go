// SPDX-License-Identifier: Apache-2.0

package cause_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/iam/refusalcause"
)

// listed is how many causes the list of known reasons has why a node does not join EKS.
const listed = 69

func catalogue(t *testing.T) cause.Catalogue {
	t.Helper()
	c, err := cause.Default()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Each of the 69 has a file, and whatever is beyond has one, too, without a gap.
func TestEveryNumber(t *testing.T) {
	t.Parallel()
	all := catalogue(t).All()
	if len(all) < listed {
		t.Fatalf("%d causes", len(all))
	}
	for i, c := range all {
		if c.ID.Number() != i+1 {
			t.Fatalf("cause %d is %s", i+1, c.ID)
		}
		if c.ID.Number() <= listed && c.State == cause.Named && c.Step == "" {
			t.Errorf("%s keeps a machine from joining, and names no step", c.ID)
		}
	}
}

// The identifiers that parts write are causes of the catalogue that say so, and the reverse.
func TestWriters(t *testing.T) {
	t.Parallel()
	c := catalogue(t)
	written := map[cause.ID]bool{}
	for rule, id := range refusalcause.All() {
		one, ok := c.Find(cause.ID(id))
		if !ok || one.State != cause.Named || one.Writer != "iam/refusalcause" {
			t.Errorf("rule %s has %s, which the catalogue has as %q, written by %q", rule, id, one.State, one.Writer)
		}
		written[one.ID] = true
	}
	for _, one := range c.All() {
		if one.Writer == "iam/refusalcause" && !written[one.ID] {
			t.Errorf("nobody writes %s", one.ID)
		}
		if one.Writer != "" {
			if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(one.Writer))); err != nil {
				t.Errorf("%s: %v", one.ID, err)
			}
		}
	}
}

// A story that a cause names is there, and names the cause.
func TestStories(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "test", "stories", "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	var stories []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		stories = append(stories, string(raw))
	}
	for _, c := range catalogue(t).All() {
		if (c.Injected == "") == (c.NotInjected == "") && c.State == cause.Named {
			t.Errorf("%s: name the story that has it happen, or say why none does", c.ID)
		}
		found := func(text string) bool {
			return c.Injected != "" && strings.Contains(text, "func "+c.Injected+"(t *testing.T)") && strings.Contains(text, string(c.ID))
		}
		if c.InStory() && !slices.ContainsFunc(stories, found) {
			t.Errorf("%s: no file has the story %s and the identifier", c.ID, c.Injected)
		}
	}
}

const good = `id: M-NODE-61
title: the disk is full
step: Booted
sentence: The machine's disk is full.
fix: muster exec $MACHINE -- df -h
signals:
- {source: report, code: DiskFull}
state: named
`

func TestRead(t *testing.T) {
	t.Parallel()
	if c, err := cause.Read([]byte(good)); err != nil || c.ID != "M-NODE-61" || c.Step != cause.Booted || len(c.Signals) != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	for name, test := range map[string]struct{ old, with, want string }{
		"empty":                       {good, "", "is empty"},
		"an unknown field":            {"title:", "titel:", "titel"},
		"a wrong identifier":          {"M-NODE-61", "M-DISK-61", "M-IAM-04"},
		"no such step":                {"Booted", "Booting", "one of the fifteen steps"},
		"no such state":               {"state: named", "state: maybe", "supported values"},
		"no fix":                      {"fix: muster exec $MACHINE -- df -h\n", "", "fix"},
		"a word that is not filled":   {"$MACHINE", "$MACHINE_ID", "$NODE"},
		"no signal":                   {"signals:\n- {source: report, code: DiskFull}\n", "", "signals"},
		"a signal of nothing":         {"code: DiskFull", "text: []", "a code or a text"},
		"a signal from nowhere":       {"source: report", "source: rumour", "rumour"},
		"a fragment that matches all": {"code: DiskFull", "text: [a]", "from 4 to"},
		"a fragment that is in all":   {"code: DiskFull", "code: DiskFull, without: [a]", "from 4 to"},
		"two lines":                   {"The machine's disk is full.", `"The machine's\ndisk"`, "one line"},
		"signals of one that is not":  {"state: named", "state: later\nwhy: not yet", "has no signals"},
		"patience for ever":           {"state: named", "state: named\npatienceSeconds: 100000", "600"},
		"a path that leads out":       {"state: named", "state: named\nupstream:\n- {module: std, file: ../x, text: abcdef}", "the file in it"},
	} {
		_, err := cause.Read([]byte(strings.Replace(good, test.old, test.with, 1)))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestReadAll(t *testing.T) {
	t.Parallel()
	other := strings.Replace(good, "M-NODE-61", "M-NODE-62", 1)
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"good":              {map[string]string{"M-NODE-61": good, "M-NODE-62": other}, ""},
		"another file name": {map[string]string{"M-NODE-60": good}, "named after its cause"},
		"one number twice":  {map[string]string{"M-NODE-61": good, "M-CAP-61": strings.Replace(good, "M-NODE", "M-CAP", 1)}, "one number"},
		"leads nowhere":     {map[string]string{"M-NODE-61": good + "excludes: [M-NODE-99]\n"}, "not another cause"},
		"itself":            {map[string]string{"M-NODE-61": good + "implies: [M-NODE-61]\n"}, "not another cause"},
		"a circle":          {map[string]string{"M-NODE-61": good + "excludes: [M-NODE-62]\n", "M-NODE-62": other + "implies: [M-NODE-61]\n"}, "through others"},
		"one is wrong":      {map[string]string{"M-NODE-61": good + "x: 1\n"}, "causes/M-NODE-61.yaml"},
	} {
		files := fstest.MapFS{}
		for id, text := range test.files {
			files["causes/"+id+".yaml"] = &fstest.MapFile{Data: []byte(text)}
		}
		if _, err := cause.ReadAll(files); test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// Whatever a file holds, it is read or refused, and what is read passes the checks.
func FuzzRead(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("id: [1]\n"))
	id := regexp.MustCompile(`^M-[A-Z]+-\d{2,3}$`)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := cause.Read(data)
		if err == nil && !id.MatchString(string(c.ID)) {
			t.Errorf("read %+v", c)
		}
	})
}
