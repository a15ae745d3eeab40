// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// output is what a command prints.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// commitDate is when the commit that is checked out was made.
func commitDate(ctx context.Context) (time.Time, error) {
	out, err := output(ctx, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(out, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("asking for the commit's date: %w", err)
	}
	return time.Unix(seconds, 0), nil
}

// changedFiles are those that differ from a commit, in the working tree.
func changedFiles(ctx context.Context, base string) ([]string, error) {
	if base == "" {
		base = changeBase(ctx)
	}
	out, err := output(ctx, "git", "diff", "--name-only", base)
	return strings.Fields(out), err
}

// changeBase is the commit that a change begins at: the merge base with origin/main, else with main, else the commit
// ten before.
func changeBase(ctx context.Context) string {
	head, _ := output(ctx, "git", "rev-parse", "HEAD")
	for _, branch := range []string{"origin/main", "main"} {
		if err := exec.CommandContext(ctx, "git", "rev-parse", "--verify", "--quiet", branch+"^{commit}").Run(); err != nil {
			continue
		}
		if base, err := output(ctx, "git", "merge-base", branch, "HEAD"); err == nil && base != head {
			return base
		}
	}
	return "HEAD~10"
}

// toolchain is what runs stories that are built.
type toolchain struct{ program, test2json string }

// prepare builds the stories and finds what makes events of what they print.
func prepare(ctx context.Context) (toolchain, error) {
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-o", binary, "./"+storiesDir)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return toolchain{}, fmt.Errorf("building the stories: %w", err)
	}
	program, err := filepath.Abs(binary)
	if err != nil {
		return toolchain{}, fmt.Errorf("building the stories: %w", err)
	}
	test2json, err := output(ctx, "go", "tool", "-n", "test2json")
	return toolchain{program, test2json}, err
}

// command prepares the run of a story, which its test program ends if it takes longer.
func (t toolchain) command(ctx context.Context, s story, longest time.Duration) *exec.Cmd {
	cmd := exec.CommandContext(ctx, t.test2json, "-t", "-p", storiesDir+" "+s.name, t.program,
		"-test.v=test2json", "-test.count=1", "-test.run=^"+s.name+"$", "-test.timeout="+longest.String())
	cmd.Dir = storiesDir
	return cmd
}

// makeTarget builds what a story needs: a target of make, with its variables.
func makeTarget(ctx context.Context, target string) error {
	cmd := exec.CommandContext(ctx, "make", strings.Fields(target)...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run() //nolint:wrapcheck // the caller says what it was
}
