// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// unsteady is an entry of the list of stories that could not be made steady: which, until when that is put up with, and
// why it fails.
type unsteady struct {
	name  string
	until time.Time
	cause string
}

// rows are the lines of a list that are neither empty nor comments, as words.
func rows(text string) [][]string {
	var all [][]string
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			all = append(all, words)
		}
	}
	return all
}

// readCore reads the names of the core stories, in the order in which they begin.
func readCore(text string, stories []story) ([]string, error) {
	var names []string
	var problems []error
	for _, row := range rows(text) {
		n := slices.IndexFunc(stories, func(s story) bool { return s.name == row[0] })
		switch {
		case n < 0:
			problems = append(problems, fmt.Errorf("core.txt: there is no story %s", row[0]))
		case stories[n].soak || stories[n].needs != "":
			problems = append(problems, fmt.Errorf("core.txt: %s needs more than `make build`, or is one of `make soak`", row[0]))
		case slices.Contains(names, row[0]):
			problems = append(problems, fmt.Errorf("core.txt: %s is listed twice", row[0]))
		}
		names = append(names, row[0])
	}
	return names, errors.Join(problems...)
}

// readUnsteady reads the stories that are not steady. An entry whose day is before that of the commit is an error, and
// so is one of a core story.
func readUnsteady(text string, stories []story, core []string, commit time.Time) ([]unsteady, error) {
	var list []unsteady
	var problems []error
	for _, row := range rows(text) {
		if len(row) < 3 {
			problems = append(problems, fmt.Errorf("unsteady.txt: %q: want NAME YYYY-MM-DD CAUSE", strings.Join(row, " ")))
			continue
		}
		until, err := time.Parse(time.DateOnly, row[1])
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("unsteady.txt: %s: %q is not a day: want YYYY-MM-DD", row[0], row[1]))
		case commit.After(until.AddDate(0, 0, 1)):
			problems = append(problems, fmt.Errorf("unsteady.txt: %s was to be mended by %s, and this commit is of %s: mend it or say why it takes longer", row[0], row[1], commit.UTC().Format(time.DateOnly)))
		case slices.Contains(core, row[0]):
			problems = append(problems, fmt.Errorf("unsteady.txt: %s is a core story, which must be steady", row[0]))
		case !slices.ContainsFunc(stories, func(s story) bool { return s.name == row[0] }):
			problems = append(problems, fmt.Errorf("unsteady.txt: there is no story %s", row[0]))
		}
		list = append(list, unsteady{row[0], until, strings.Join(row[2:], " ")})
	}
	return list, errors.Join(problems...)
}

// times are the seconds that stories took, by name.
type times map[string]int

// unknownTime is expected of a story that has no time yet.
const unknownTime = 90

func (t times) of(name string) time.Duration {
	if seconds, ok := t[name]; ok {
		return time.Duration(seconds) * time.Second
	}
	return unknownTime * time.Second
}

func readTimes(text string) (times, error) {
	t := times{}
	for _, row := range rows(text) {
		if len(row) != 2 {
			return nil, fmt.Errorf("times.txt: %q: want NAME SECONDS", strings.Join(row, " "))
		}
		seconds, err := strconv.Atoi(row[1])
		if err != nil || seconds < 0 {
			return nil, fmt.Errorf("times.txt: %s: %q is not a number of seconds", row[0], row[1])
		}
		t[row[0]] = seconds
	}
	return t, nil
}

const timesHeader = "# Seconds that each story took; `make stories` rewrites this file. The gate chooses by them what it has time for.\n"

// write replaces the file of the times by what is known of the stories that there are.
func (t times) write(path string, stories []story) error {
	var b strings.Builder
	b.WriteString(timesHeader)
	for _, s := range stories {
		if seconds, ok := t[s.name]; ok {
			fmt.Fprintf(&b, "%s %d\n", s.name, seconds)
		}
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil { //nolint:gosec // a tracked file, which everybody may read
		return fmt.Errorf("writing the times of stories: %w", err)
	}
	return nil
}
