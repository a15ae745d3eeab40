// SPDX-License-Identifier: Apache-2.0

// Testcount runs commands one after the other, prints a line for each package that `go test -json` tells of and the
// output of what fails, keeps everything in a log, and ends with one line that counts the tests:
//
//	testcount -log FILE -- COMMAND ARGS... [-- COMMAND ARGS...]...
//
// It fails when a test or a command did, or when there was no test at all. Nothing that failed is run again.
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
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, errFailed):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "testcount:", err)
		os.Exit(2)
	}
}

// errFailed is for what the report has told already.
var errFailed = errors.New("not all passed")

func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	flags := flag.NewFlagSet("testcount", flag.ContinueOnError)
	path := flags.String("log", "", "file for everything that the commands print")
	if err := flags.Parse(args); err != nil {
		return err
	}
	commands := split(flags.Args())
	if *path == "" || len(commands) == 0 {
		return errors.New("no command to run; want -log FILE -- COMMAND [ARGS]")
	}
	if err := os.MkdirAll(filepath.Dir(*path), 0o750); err != nil {
		return fmt.Errorf("making the log's directory: %w", err)
	}
	log, err := os.Create(*path)
	if err != nil {
		return fmt.Errorf("making the log: %w", err)
	}
	defer func() {
		if closing := log.Close(); err == nil && closing != nil {
			err = fmt.Errorf("writing the log: %w", closing)
		}
	}()

	r := newReport(stdout, log)
	for _, command := range commands {
		if ctx.Err() != nil {
			break
		}
		before := r.failed
		if err := execute(ctx, command, r); err != nil {
			r.line(fmt.Sprintf("FAIL  %s: %v", strings.Join(command, " "), err))
			if r.failed == before {
				r.failed++ // it failed without a test to blame
			}
		}
	}
	if len(r.reasons) > 0 {
		fmt.Fprintf(stdout, "What failed, in short:\n%s\n", strings.Join(r.reasons, "\n"))
	}
	for _, name := range r.notRun {
		fmt.Fprintf(stdout, "NOT RUN %s\n", name)
	}
	fmt.Fprintf(stdout, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	if r.failed > 0 || r.passed == 0 {
		return errFailed
	}
	return ctx.Err()
}

// split cuts args at every "--".
func split(args []string) [][]string {
	var commands [][]string
	for len(args) > 0 {
		end := slices.Index(args, "--")
		if end < 0 {
			end = len(args)
		}
		if end > 0 {
			commands = append(commands, args[:end])
		}
		args = args[min(end+1, len(args)):]
	}
	return commands
}

// execute runs one command; both its outputs make up one stream, as its writer meant them to be read.
func execute(ctx context.Context, command []string, r *report) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = r, r
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // lets tests clean up
	cmd.WaitDelay = time.Minute
	err := cmd.Run()
	return errors.Join(err, r.flush())
}
