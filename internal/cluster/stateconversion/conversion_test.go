// SPDX-License-Identifier: Apache-2.0

package stateconversion

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/statedir"
)

var silent = slog.New(slog.DiscardHandler)

// put writes a file, and the directories that it is in.
func put(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// files are the files below a directory, by their paths.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// counted is a step that has a file say the next number. It fails if it is taken before the step before it.
func counted(number int) Step {
	return Step{fmt.Sprintf("number %d", number), func(dir statedir.Dir) (func() error, error) {
		path := filepath.Join(string(dir), "number.json")
		return func() error {
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if is := string(raw); is != fmt.Sprint(number-1) && is != fmt.Sprint(number) {
				return fmt.Errorf("it is %s", is)
			}
			return os.WriteFile(path, []byte(fmt.Sprint(number)), 0o600)
		}, nil
	}}
}

// crash is what a test ends a conversion with.
type crash struct{}

// runs lets a conversion make some writes, and reports whether that was enough.
func runs(c Conversion, writes int) (ended bool, err error) {
	c.wrote = func() {
		if writes--; writes < 0 {
			panic(crash{})
		}
	}
	defer func() {
		if what := recover(); what != nil {
			if _, ok := what.(crash); !ok {
				panic(what)
			}
			ended = false
		}
	}()
	return true, c.Run(silent)
}

// TestCutShort ends a conversion after each of its writes, and again after each of the writes that are left. The records
// that are saved are those of before, be it another release that carries on.
func TestCutShort(t *testing.T) {
	begin := func(t *testing.T) statedir.Dir {
		t.Helper()
		dir := statedir.Dir(t.TempDir())
		put(t, dir.Layout(), "4\n")
		put(t, filepath.Join(string(dir), "number.json"), "0")
		put(t, filepath.Join(string(dir.Cluster("blue")), "cluster.yaml"), "blue")
		return dir
	}
	before := files(t, string(begin(t)))
	three := []Step{counted(1), counted(2), counted(3)}
	rounds := 0
	for first := 0; ; first++ {
		var whole bool
		for second := 0; ; second++ {
			dir := begin(t)
			c := Conversion{dir: dir, steps: three, release: "v0.2.0", wrote: func() {}}
			ended, err := runs(c, first) // ends after the write beyond them
			if whole = ended; err != nil {
				t.Fatalf("after %d writes: %v", first, err)
			}
			was, err := look(dir)
			if err != nil {
				t.Fatal(err)
			}
			c.release, c.steps = "v0.3.0", slices.Concat(three, []Step{counted(4)})
			if ended, err = runs(c, second); err != nil {
				t.Fatalf("after %d and %d writes: %v", first, second, err)
			}
			if err := c.Run(silent); err != nil {
				t.Fatalf("after %d and %d writes: %v", first, second, err)
			}
			rounds++
			converted(t, dir, before, fmt.Sprintf("after %d and %d writes", first, second), was.layout == 7)
			if ended {
				break
			}
		}
		if whole {
			break
		}
	}
	if t.Logf("%d rounds", rounds); rounds < 50 {
		t.Errorf("there were %d rounds", rounds)
	}
}

// converted checks a directory that was converted, in one go by v0.3.0 unless v0.2.0 was done before.
func converted(t *testing.T, dir statedir.Dir, before map[string]string, when string, twice bool) {
	t.Helper()
	is := files(t, string(dir))
	saved := map[string]string{}
	for name, content := range is {
		if rest, ok := strings.CutPrefix(name, "saved/layout-4/"); ok {
			saved[rest] = content
		}
	}
	if !maps.Equal(saved, before) {
		t.Errorf("%s: saved are %v", when, saved)
	}
	want := `{"release":"v0.3.0","layout":8,"from":4}`
	if _, again := is["saved/v0.2.0-layout-7/number.json"]; again != twice {
		t.Errorf("%s: there is %v", when, is)
	} else if again {
		want = `{"release":"v0.3.0","layout":8,"before":"v0.2.0","from":7}`
	}
	if is["number.json"] != "4" || is["layout"] != "8\n" || is["written.json"] != want+"\n" {
		t.Errorf("%s: there is %v", when, is)
	}
	for name := range is {
		if strings.Contains(name, ".new-") {
			t.Errorf("%s: %s is left", when, name)
		}
	}
}

// A step that cannot be taken keeps all from being taken; all that is wrong is told in one line.
func TestCheckedFirst(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	put(t, dir.Layout(), "4\n")
	put(t, filepath.Join(string(dir), "number.json"), "0")
	before := files(t, string(dir))
	fails := func(why string) Step {
		return Step{"what " + why, func(statedir.Dir) (func() error, error) { return nil, errors.New(why) }}
	}
	c := Conversion{dir: dir, steps: []Step{counted(1), fails("is lost"), fails("is damaged")}, release: "v0.2.0", wrote: func() {}}
	want := fmt.Sprintf("state directory %s cannot be converted, and nothing was changed: what is lost: is lost; what is damaged: is damaged", dir)
	if _, err := c.Check(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := c.Run(silent); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if after := files(t, string(dir)); !maps.Equal(before, after) {
		t.Errorf("it was changed: %v", after)
	}
	nothing := Step{"nothing", func(statedir.Dir) (func() error, error) { return nil, nil }}
	for steps, want := range map[*[]Step]string{
		{counted(1), nothing}: "The state directory of an earlier Muster is converted to that of Muster v0.2.0: number 1. The records of before are kept in %s/saved/layout-4.",
		{nothing}:             "The state directory of an earlier Muster is converted to that of Muster v0.2.0. The records of before are kept in %s/saved/layout-4.",
		{}:                    "",
	} {
		c.steps = *steps
		if want != "" {
			want = fmt.Sprintf(want, dir)
		}
		if plan, err := c.Check(); err != nil || plan.String() != want {
			t.Errorf("got %q, %v, want %q", plan, err, want)
		}
	}
	if after := files(t, string(dir)); !maps.Equal(before, after) {
		t.Errorf("a check changed it: %v", after)
	}
}

// A step that fails leaves the layout as it is.
func TestFailedStep(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	put(t, dir.Layout(), "4\n")
	put(t, filepath.Join(string(dir), "number.json"), "0")
	full := Step{"what is large", func(statedir.Dir) (func() error, error) {
		return func() error { return errors.New("the disk is full") }, nil
	}}
	c := Conversion{dir: dir, steps: []Step{counted(1), full, counted(2)}, release: "v0.2.0", wrote: func() {}}
	if err := c.Run(silent); err == nil || !strings.Contains(err.Error(), "is not converted: what is large: the disk is full") {
		t.Error(err)
	}
	if is := files(t, string(dir)); is["layout"] != "5\n" || is["number.json"] != "1" {
		t.Errorf("there is %v", is)
	}
}

// A directory that is not in use stays empty, and one of a newer release as it is.
func TestNothingToConvert(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	if err := Of(dir).Run(silent); err != nil {
		t.Error(err)
	}
	put(t, dir.Layout(), "1000\n")
	put(t, writerFile(dir), `{"release":"v9.0.0","layout":1000,"from":900}`)
	before := files(t, string(dir))
	if err := Of(dir).Run(silent); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("state directory %s was written by Muster v9.0.0 (layout 1000), and this is Muster v", dir)) ||
		strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	if after := files(t, string(dir)); !maps.Equal(before, after) {
		t.Errorf("it was changed: %v", after)
	}
}
