// SPDX-License-Identifier: Apache-2.0

// Commits checks that each commit since the merge base with main builds by itself:
//
//	go run ./tools/commits [-base REV] [-within 4m]
//
// Every commit is checked out into a worktree below .build. Its imports are resolved there by `go list -deps -test`, in
// each module that the commit can have broken, and its subject must have the form of CONTRIBUTING.md: `area: verb
// what`, with a verb of verbs.txt. The packages that it changes and their importers are vetted, the newest commit
// first, until the time for that is over; the commits that were not reached are named.
//
// The flags of go are those of the Makefile's AS_BUILT, so that what the build compiled is used.
//
// Exit status: 0 if everything that was checked holds, 1 if a commit fails, 2 if the check itself could not be made.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, ".", os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, errFailed):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "commits:", err)
		os.Exit(2)
	}
}

// errFailed means that a commit fails, which has been printed already.
var errFailed = errors.New("a commit does not hold")

// run checks the commits of the repository that dir belongs to.
func run(ctx context.Context, dir string, args []string, stdout io.Writer) (err error) {
	flags := flag.NewFlagSet("commits", flag.ContinueOnError)
	base := flags.String("base", "", "commits since the merge base with this revision, instead of origin/main or main")
	within := flags.Duration("within", 4*time.Minute, "time for vetting, all commits together")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: usage is commits [-base REV] [-within DURATION]", flags.Arg(0))
	}
	r, err := open(ctx, dir)
	if err != nil {
		return err
	}
	commits, which, err := r.commits(ctx, *base)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%d commits: %s\n", len(commits), which)
	if len(commits) == 0 {
		return nil
	}
	tree, remove, err := r.worktree(ctx, commits[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	c := check{repository: r, tree: tree, within: *within, left: *within, stdout: stdout}
	for _, commit := range commits {
		if err := c.commit(ctx, commit); err != nil {
			return fmt.Errorf("commit %s: %w", commit.short(), err)
		}
	}
	return c.conclude(len(commits))
}
