// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// newest is the number of commits that are checked where no base says how many there are.
const newest = 10

// repository is a checkout of git.
type repository struct{ dir string }

// commit is one commit of the history.
type commit struct {
	id, subject string
	parents     []string
}

func (c commit) short() string { return c.id[:12] }

func open(ctx context.Context, dir string) (repository, error) {
	root, err := repository{dir}.git(ctx, "rev-parse", "--show-toplevel")
	return repository{root}, err
}

// git returns what git prints, without the line's end. No hook of the user runs, and no variable of a hook that this
// program runs in says where the repository is.
func (r repository) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.hooksPath=/dev/null", "-C", r.dir}, args...)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "GIT_DIR=") || strings.HasPrefix(variable, "GIT_WORK_TREE=") || strings.HasPrefix(variable, "GIT_INDEX_FILE=")
	})
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(talk.String()))
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// commits are those to check, newest first, and a description of which they are.
func (r repository) commits(ctx context.Context, wanted string) (_ []commit, which string, err error) {
	base, name, err := r.base(ctx, wanted)
	if err != nil {
		return nil, "", err
	}
	selection, which := []string{base + "..HEAD"}, fmt.Sprintf("all since %.12s, the merge base with %s", base, name)
	if base == "" {
		selection = []string{fmt.Sprintf("--max-count=%d", newest), "HEAD"}
		which = fmt.Sprintf("the newest %d, since %s", newest, name)
	}
	out, err := r.git(ctx, append([]string{"rev-list", "--topo-order", "--no-commit-header", "--format=%H%x09%P%x09%s"}, selection...)...)
	if err != nil {
		return nil, "", err
	}
	var all []commit
	for line := range strings.Lines(out) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if len(fields) != 3 {
			return nil, "", fmt.Errorf("git rev-list: unexpected line %q", line)
		}
		all = append(all, commit{id: fields[0], parents: strings.Fields(fields[1]), subject: fields[2]})
	}
	return all, which, nil
}

// base is the commit that the history is checked from, and the revision that names it; or "" and the reason why no base
// is known. A revision that was asked for by name must exist.
func (r repository) base(ctx context.Context, wanted string) (base, name string, err error) {
	head, err := r.git(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return "", "", err
	}
	if wanted != "" {
		base, err = r.git(ctx, "merge-base", wanted, "HEAD")
		if err != nil {
			return "", "", fmt.Errorf("finding the merge base with -base %s: %w", wanted, err)
		}
		return base, wanted, nil
	}
	for _, name := range []string{"refs/remotes/origin/main", "refs/heads/main"} {
		base, err := r.git(ctx, "merge-base", name, "HEAD")
		switch {
		case ctx.Err() != nil:
			return "", "", ctx.Err()
		case err != nil: // no such branch here, or no common history
		case base == head:
			return "", fmt.Sprintf("HEAD has no commit that %s does not have", shortName(name)), nil
		default:
			return base, shortName(name), nil
		}
	}
	return "", "neither origin/main nor main has a merge base with HEAD", nil
}

func shortName(ref string) string {
	return strings.TrimPrefix(strings.TrimPrefix(ref, "refs/remotes/"), "refs/heads/")
}

// changed are the files that a commit changes, deleted ones included. A merge is compared with its first parent: the
// other side's changes can break what they meet there.
func (r repository) changed(ctx context.Context, c commit) ([]string, error) {
	args := []string{"diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-commit-id"}
	if len(c.parents) == 0 {
		args = append(args, "--root", c.id)
	} else {
		args = append(args, c.parents[0], c.id)
	}
	out, err := r.git(ctx, args...)
	return names(out), err
}

// modules are the directories of a commit's modules, "." among them. Modules of testdata, and those that go ignores,
// are left out.
func (r repository) modules(ctx context.Context, c commit) ([]string, error) {
	out, err := r.git(ctx, "ls-tree", "-r", "-z", "--name-only", c.id)
	var found []string
	for _, name := range names(out) {
		ignored := func(element string) bool {
			return element == "testdata" || element == "vendor" || strings.HasPrefix(element, "_") || element != "." && strings.HasPrefix(element, ".")
		}
		if dir := path.Dir(name); path.Base(name) == "go.mod" && !slices.ContainsFunc(strings.Split(dir, "/"), ignored) {
			found = append(found, dir)
		}
	}
	slices.Sort(found)
	return found, err
}

// names are the file names of git's output with -z.
func names(out string) []string {
	return slices.DeleteFunc(strings.Split(out, "\x00"), func(name string) bool { return name == "" })
}
