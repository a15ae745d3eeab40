// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// partTime is how long a suite of one part may take.
const partTime = 2 * time.Hour

// options are the flags.
type options struct {
	binaries, reports, arguments string
	table, karpenter             string
	list                         bool
	part, parts, memory          int
	focus, suites                *regexp.Regexp
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "karpenter-suites:", err)
		os.Exit(1)
	}
}

func readOptions(args []string) (o options, err error) {
	set := flag.NewFlagSet("karpenter-suites", flag.ContinueOnError)
	set.StringVar(&o.binaries, "bin", "", "directory of the suites' programs, each SUITE.test")
	set.StringVar(&o.reports, "report", "", "directory of reports")
	set.StringVar(&o.table, "table", "", "file of specs and their results, which a run adds to")
	set.StringVar(&o.karpenter, "karpenter", "", "version of Karpenter, which the table tells of each result")
	set.IntVar(&o.memory, "memory", 0, "GiB that the host offers to machines: specs that ask for more are not run")
	set.StringVar(&o.arguments, "core-arguments", "", "arguments of the suites of Karpenter's core")
	set.BoolVar(&o.list, "list", false, "count specs, and run none")
	of := set.String("part", "1/1", "part of the specs to run: 2/5 is the second of five")
	focus := set.String("focus", "", "regular expression of specs to run")
	suites := set.String("suite", "", "regular expression of suites, such as provider-drift or core-regression")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if _, err := fmt.Sscanf(*of, "%d/%d", &o.part, &o.parts); err != nil || o.part < 1 || o.part > o.parts || fmt.Sprintf("%d/%d", o.part, o.parts) != *of {
		return o, fmt.Errorf("invalid -part %q: it is a number and how many parts there are, such as 2/5", *of)
	}
	if o.focus, err = regexp.Compile(*focus); err != nil {
		return o, fmt.Errorf("reading -focus: %w", err)
	}
	if o.suites, err = regexp.Compile(*suites); err != nil {
		return o, fmt.Errorf("reading -suite: %w", err)
	}
	if o.binaries == "" || o.reports == "" || o.table == "" {
		return o, errors.New("-bin, -report and -table are needed: tools/karpenter-suites.sh gives them")
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := readOptions(args)
	if err != nil {
		return err
	}
	all, err := o.everySpec(ctx)
	if err != nil {
		return err
	}
	kept, results, err := readTable(o.table)
	if err != nil {
		return err
	}
	if err := o.keep(with(kept, all), results); err != nil {
		return err
	}
	if !o.list {
		if err := o.runSpecs(ctx, o.chosen(all), with(kept, all), results); err != nil {
			return err
		}
	}
	t := count(all, limits(), results)
	t.print(os.Stdout)
	if t.Failed > 0 {
		return fmt.Errorf("%d specs failed", t.Failed)
	}
	return nil
}

// everySpec asks each suite for its specs.
func (o options) everySpec(ctx context.Context) (all []suite, err error) {
	programs, err := filepath.Glob(filepath.Join(o.binaries, "*.test"))
	if err != nil || len(programs) == 0 {
		return nil, fmt.Errorf("there is no suite in %s: %w", o.binaries, errors.Join(err, fs.ErrNotExist))
	}
	for _, program := range programs {
		s := suite{name: strings.TrimSuffix(filepath.Base(program), ".test")}
		specs, err := o.listed(program, s.name)
		if err != nil {
			specs, _, err = o.ginkgo(ctx, s.name, "list", "--ginkgo.dry-run")
		}
		if err != nil {
			return nil, err
		}
		s.specs = specs
		all = append(all, s)
	}
	return all, nil
}

// listed reads the report of an earlier dry run, if the program of the suite is not newer.
func (o options) listed(program, suite string) ([]string, error) {
	path := filepath.Join(o.reports, suite+".list.json")
	built, err := os.Stat(program)
	if err != nil {
		return nil, fmt.Errorf("looking at the program of suite %s: %w", suite, err)
	}
	made, err := os.Stat(path)
	if err == nil && made.ModTime().Before(built.ModTime()) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the specs of suite %s: %w", suite, err)
	}
	specs, _, err := readReports(path)
	return specs, err
}

// chosen are the specs to run.
func (o options) chosen(all []suite) []suite {
	var wanted []suite
	for _, s := range all {
		c := suite{name: s.name}
		for _, spec := range s.specs {
			if o.suites.MatchString(s.name) && o.focus.MatchString(spec) && whyNot(limits(), s.name, spec) == "" && memory(s.name, spec) <= o.memory {
				c.specs = append(c.specs, spec)
			}
		}
		wanted = append(wanted, c)
	}
	return part(wanted, o.part, o.parts)
}

// runSpecs runs specs, suite by suite, and adds how they ended to the results, which are kept after each run. Ginkgo skips what
// follows a failure in an Ordered container, and what follows an interruption of the suite: that is run again, while some of it ends.
func (o options) runSpecs(ctx context.Context, chosen, all []suite, results map[string]map[string]result) error {
	for _, s := range chosen {
		if len(s.specs) > 0 && results[s.name] == nil {
			results[s.name] = map[string]result{}
		}
		end := time.Now().Add(partTime)
		for todo, before := s.specs, 0; len(todo) > 0 && len(todo) != before && time.Now().Before(end); {
			fmt.Fprintf(os.Stderr, "%s: %d specs\n", s.name, len(todo))
			_, ended, err := o.ginkgo(ctx, s.name, "run", "--ginkgo.focus="+exactly(todo), "--ginkgo.vv", "--ginkgo.timeout="+time.Until(end).String(), "--ginkgo.grace-period=3m")
			if err != nil {
				return err
			}
			for spec, how := range ended {
				how.Date, how.Karpenter = time.Now().Format(time.DateOnly), o.karpenter
				results[s.name][spec] = how
			}
			if err := o.keep(all, results); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return errors.New("interrupted; the results of what has ended are kept")
			}
			before, todo = len(todo), left(todo, ended)
		}
	}
	return nil
}

// exactly is a regular expression that specs match by their full texts. Ginkgo puts the name of the suite before a text.
func exactly(specs []string) string {
	quoted := make([]string, 0, len(specs))
	for _, spec := range specs {
		quoted = append(quoted, regexp.QuoteMeta(spec))
	}
	return "(?:^| )(?:" + strings.Join(quoted, "|") + ")$"
}

// ginkgo runs the program of a suite, and reads its report. That specs failed is no error.
func (o options) ginkgo(ctx context.Context, suite, what string, args ...string) (specs []string, ended map[string]result, err error) {
	report := filepath.Join(o.reports, suite+"."+what+".json")
	if err := os.Remove(report); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("removing an earlier report: %w", err)
	}
	log, err := os.Create(filepath.Join(o.reports, suite+"."+what+".log"))
	if err != nil {
		return nil, nil, fmt.Errorf("making the log of suite %s: %w", suite, err)
	}
	defer log.Close()
	if strings.HasPrefix(suite, "core-") {
		args = append(args, strings.Fields(o.arguments)...)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(o.binaries, suite+".test"), append([]string{"-test.timeout=0", "--ginkgo.json-report=" + report}, args...)...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, o.reports
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	failed := cmd.Run()
	specs, ended, err = readReports(report)
	if err != nil {
		return nil, nil, fmt.Errorf("suite %s left no report, and %s says why: %w", suite, log.Name(), errors.Join(failed, err))
	}
	return specs, ended, nil
}
