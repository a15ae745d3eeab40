// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// shown is the number of lines that are printed of what go says about a commit.
const shown = 10

// check is the state of one run.
type check struct {
	repository repository
	tree       repository    // the worktree
	within     time.Duration // time for vetting
	left       time.Duration // the time that is left of it
	failed     int
	vetted     int
	notReached []string // by vet
	stdout     io.Writer
}

// commit checks one commit. Failures are printed. An error means that the check could not be made.
func (c *check) commit(ctx context.Context, commit commit) error {
	holds := true
	fail := func(what, why string) {
		holds = false
		fmt.Fprintf(c.stdout, "FAIL  %s %s\n  %s:\n%s", commit.short(), commit.subject, what, indent(why))
	}
	if problem := subjectProblem(commit); problem != "" {
		fail("subject", problem)
	}
	if _, err := c.tree.git(ctx, "checkout", "--quiet", "--force", "--detach", commit.id); err != nil {
		return err
	}
	changed, err := c.repository.changed(ctx, commit)
	if err != nil {
		return err
	}
	affected, err := c.affected(ctx, commit, changed)
	if err != nil {
		return err
	}
	imports := true
	for _, m := range affected {
		complaint, err := m.list(ctx)
		if err != nil {
			return err
		}
		if complaint != "" {
			imports = false
			fail(m.command("go list -deps -test ./..."), complaint)
			break // other modules would say the same of the root module's packages
		}
	}
	if imports { // there is nothing to vet in a tree without a package that it imports
		if err := c.vet(ctx, commit, affected, changed, fail); err != nil {
			return err
		}
	}
	if !holds {
		c.failed++
	}
	return nil
}

// affected are the modules that a commit can have broken.
func (c *check) affected(ctx context.Context, commit commit, changed []string) ([]module, error) {
	dirs, err := c.repository.modules(ctx, commit)
	if err != nil || !slices.Contains(dirs, ".") {
		return nil, err // a tree without Go
	}
	root, err := module{c.tree.dir, "."}.path()
	if err != nil {
		return nil, err
	}
	var affected []module
	for _, dir := range dirs {
		m := module{c.tree.dir, dir}
		if has, err := m.hasSources(); err != nil {
			return nil, err
		} else if !has { // nothing of it is ours: it names a program to build, maybe for another Go than this one
			continue
		}
		stands, err := m.stands(root)
		if err != nil {
			return nil, err
		}
		if dir == "." || !stands || slices.ContainsFunc(changed, func(file string) bool { return owner(dirs, file) == dir }) {
			affected = append(affected, m)
		}
	}
	return affected, nil
}

// vet vets what a commit changes, as long as there is time.
func (c *check) vet(ctx context.Context, commit commit, affected []module, changed []string, fail func(what, why string)) error {
	if c.left <= 0 {
		c.notReached = append(c.notReached, commit.short())
		return nil
	}
	began := time.Now()
	defer func() { c.left -= time.Since(began) }()
	timed, cancel := context.WithTimeout(ctx, c.left)
	defer cancel()
	err := c.vetModules(timed, affected, changed, fail)
	if err != nil && timed.Err() != nil && ctx.Err() == nil {
		c.notReached = append(c.notReached, commit.short())
		return nil
	}
	c.vetted++
	return err
}

func (c *check) vetModules(ctx context.Context, affected []module, changed []string, fail func(what, why string)) error {
	all := map[module][]goPackage{}
	for _, m := range affected {
		packages, err := m.packages(ctx)
		if err != nil {
			return err
		}
		all[m] = packages
	}
	concerned := concernedPackages(c.tree.dir, all, changed)
	for _, m := range affected {
		if len(concerned[m]) == 0 {
			continue
		}
		complaint, err := m.vet(ctx, concerned[m])
		if err != nil {
			return err
		}
		if complaint != "" {
			fail(m.command("go vet"), complaint)
		}
	}
	return nil
}

// conclude prints what was done, and returns errFailed if a commit failed.
func (c *check) conclude(commits int) error {
	fmt.Fprintf(c.stdout, "%d commits checked, %d failed; vetted %d in %s\n", commits, c.failed, c.vetted, (c.within - c.left).Round(time.Second))
	if len(c.notReached) > 0 {
		fmt.Fprintf(c.stdout, "vet did not reach %d: %s\n", len(c.notReached), strings.Join(c.notReached, ", "))
	}
	if c.failed > 0 {
		return errFailed
	}
	return nil
}

// indent shows the first lines of a text.
func indent(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	var b strings.Builder
	for _, line := range lines[:min(shown, len(lines))] {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	if more := len(lines) - shown; more > 0 {
		fmt.Fprintf(&b, "    ... and %d lines more\n", more)
	}
	return b.String()
}
