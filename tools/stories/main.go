// SPDX-License-Identifier: Apache-2.0

// Stories chooses among the stories of test/stories and runs them, each as a process of its own, several at the same
// time:
//
//	stories -core                      the stories of core.txt
//	stories -sample -for 8m            those that the change touches, then others, a part of them that moves on by the day, while there is time
//	stories -all                       all but those of `make soak`; rewrites times.txt
//	stories TestHosts TestTokens       these
//
// It prints the events of `go test -json`, which tools/testcount counts, and at the end what ran, for how long, and
// what did not. A story without t.Parallel runs alone. The lists are in test/stories: core.txt, unsteady.txt and
// times.txt.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const (
	storiesDir = "test/stories"
	binary     = ".build/stories.test"
	// unsteadyRounds is how often a story runs that is not steady.
	unsteadyRounds = 5
	// patience is how long a story may take at least before its test program ends it.
	patience = 20 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, errFailed):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "stories:", err)
		os.Exit(2)
	}
}

// errFailed is for what has been told already.
var errFailed = errors.New("not all passed")

// settings are the command line.
type settings struct {
	core, sample, all, list bool
	base                    string
	within                  time.Duration
	beside                  int
	names                   []string
}

func parse(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("stories", flag.ContinueOnError)
	flags.BoolVar(&s.core, "core", false, "run the core stories")
	flags.BoolVar(&s.sample, "sample", false, "run what the change touches, then a part of the others")
	flags.BoolVar(&s.all, "all", false, "run all but the stories of `make soak`, and rewrite their times")
	flags.BoolVar(&s.list, "list", false, "print what would run, and run nothing")
	flags.StringVar(&s.base, "base", "", "commit to which the change is the difference; default: the merge base with origin/main or main, else ten commits ago")
	flags.DurationVar(&s.within, "for", 0, "begin no story that would not end within this time; 0 for no limit")
	flags.IntVar(&s.beside, "beside", 0, "process group to stop while a story runs alone")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	s.names = flags.Args()
	modes := 0
	for _, mode := range []bool{s.core, s.sample, s.all, len(s.names) > 0} {
		if mode {
			modes++
		}
	}
	if modes != 1 {
		return s, errors.New("want one of -core, -sample, -all and names of stories")
	}
	return s, nil
}

// lists are the tracked files about stories, read and checked.
type lists struct {
	stories  []story
	core     []string
	unsteady []unsteady
	times    times
}

func readLists(commit time.Time) (l lists, err error) {
	var problems []error
	l.stories, err = readCatalogue(".", storiesDir)
	problems = append(problems, err)
	text := map[string]string{}
	for _, name := range []string{"core.txt", "unsteady.txt", "times.txt"} {
		raw, err := os.ReadFile(filepath.Join(storiesDir, name))
		problems = append(problems, err)
		text[name] = string(raw)
	}
	l.core, err = readCore(text["core.txt"], l.stories)
	problems = append(problems, err)
	l.unsteady, err = readUnsteady(text["unsteady.txt"], l.stories, l.core, commit)
	problems = append(problems, err)
	l.times, err = readTimes(text["times.txt"])
	return l, errors.Join(append(problems, err)...)
}

// choose is what is to run, in order.
func (l lists) choose(ctx context.Context, s settings, commit time.Time) ([]chosen, error) {
	var skip []string
	for _, u := range l.unsteady {
		skip = append(skip, u.name)
	}
	switch {
	case s.sample:
		changed, err := changedFiles(ctx, s.base)
		skip = append(skip, unbuilt(l.stories, exists)...)
		return sample(l.stories, append(skip, l.core...), changed, l.times, commit), err
	case s.all:
		var list []chosen
		for _, story := range l.stories {
			if !story.soak && !slices.Contains(skip, story.name) {
				list = append(list, chosen{story: story})
			}
		}
		order(list, l.times)
		return list, nil
	}
	names := s.names
	if s.core {
		names = l.core
	}
	var list []chosen
	for _, name := range names {
		n := slices.IndexFunc(l.stories, func(s story) bool { return s.name == name })
		if n < 0 {
			return nil, fmt.Errorf("there is no story %s", name)
		}
		list = append(list, chosen{story: l.stories[n]})
	}
	if s.core {
		order(list, l.times)
	}
	return list, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	began := time.Now()
	commit, err := commitDate(ctx)
	if err != nil {
		return err
	}
	l, err := readLists(commit)
	if err != nil {
		return err
	}
	list, err := l.choose(ctx, s, commit)
	if err != nil {
		return err
	}
	if s.list {
		for _, c := range list {
			fmt.Fprintf(out, "%-44s %4d s  %s\n", c.name, seconds(l.times.of(c.name)), c.why)
		}
		return nil
	}
	n, limit, err := slotsHere()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d stories at a time; the limit is %s\n", n, limit)
	tools, err := prepare(ctx)
	if err != nil {
		return err
	}
	r := &runner{build: makeTarget, out: out, slots: n, times: l.times, beside: s.beside, command: func(ctx context.Context, s story) *exec.Cmd {
		return tools.command(ctx, s, max(patience, 4*l.times.of(s.name)))
	}}
	if s.within > 0 {
		r.until = began.Add(s.within)
	}
	outcomes := r.run(ctx, list)
	if s.all {
		for _, u := range l.unsteady {
			n := slices.IndexFunc(l.stories, func(s story) bool { return s.name == u.name })
			fmt.Fprintf(out, "UNSTEADY %s failed %d times of %d; to be mended by %s: %s\n", u.name,
				r.rounds(ctx, l.stories[n], unsteadyRounds, io.Discard), unsteadyRounds, u.until.Format(time.DateOnly), u.cause)
		}
	}
	summary(out, outcomes, time.Since(began))
	failed := slices.ContainsFunc(outcomes, func(o outcome) bool { return o.failed || o.notRun == "interrupted" })
	if s.all {
		for _, o := range outcomes {
			if !o.failed && o.notRun == "" {
				l.times[o.name] = seconds(o.took)
			}
		}
		if err := l.times.write(filepath.Join(storiesDir, "times.txt"), l.stories); err != nil {
			return err
		}
	}
	if failed {
		return errFailed
	}
	return nil
}
