// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/platform/shellquote"
)

// builder builds what an add-on needs and nobody built yet, in the source tree that this program is of.
type builder struct {
	program string // this one, without symbolic links
	// terminal is true if there is somebody to be asked.
	terminal bool
	run      func(ctx context.Context, tree, target string, talk io.Writer) error
}

// newBuilder returns the builder of this program.
func newBuilder(streams terminal.Streams) (*builder, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return nil, fmt.Errorf("finding muster's own program: %w", err)
	}
	return &builder{program: self, terminal: isTerminal(streams.In) && terminal.Is(streams.Err), run: runMake}, nil
}

// ensure builds what an add-on needs, if somebody agrees: with yes, or asked on a terminal. Otherwise it changes
// nothing, and its error says what builds it: the service would say no more than that the add-on is DEGRADED.
func (b *builder) ensure(ctx context.Context, known addon.Addon, streams terminal.Streams, yes bool) error {
	problem := known.Unbuilt(b.has)
	if problem == "" {
		return nil
	}
	tree, err := sourceTree(b.program)
	if err != nil {
		return fmt.Errorf("%s (%w)", problem, err)
	}
	command := "make -C " + shellquote.Quote(tree) + " " + known.Build.Target
	missing := fmt.Sprintf("%s %s is not built here: `%s` builds it, which takes %s the first time", known.Name, known.Version, command, known.Build.Time)
	if !yes {
		if !b.terminal {
			return fmt.Errorf("%s; with --yes this command runs it", missing)
		}
		if !agreed(streams, missing+". Run it now?") {
			return errors.New("nothing was built, and no add-on was made")
		}
	}
	_, _ = fmt.Fprintf(streams.Err, "Building %s: %s\n", known.Name, command)
	if err := b.run(ctx, tree, known.Build.Target, streams.Err); err != nil {
		return fmt.Errorf("building %s by `%s`: %w", known.Name, command, err)
	}
	if problem := known.Unbuilt(b.has); problem != "" {
		return fmt.Errorf("`%s` made something else: %s", command, problem)
	}
	return nil
}

// has reports whether a file is there, by its path below the directory of Muster's programs.
func (b *builder) has(path string) bool {
	return terminal.Exists(filepath.Join(filepath.Dir(b.program), filepath.FromSlash(path)))
}

// agreed asks a question whose answer is no unless somebody says yes.
func agreed(streams terminal.Streams, question string) bool {
	_, _ = fmt.Fprintf(streams.Err, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(io.LimitReader(streams.In, 64)).ReadString('\n') // an end is a no
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true
	}
	return false
}

// sourceTree is the directory of the sources that a program was built from: the parent of its own. Programs of that
// directory run with the same trust as this one: whoever can change them could also have changed this program.
func sourceTree(program string) (string, error) {
	tree := filepath.Dir(filepath.Dir(program))
	own, err := os.Stat(program)
	if err != nil {
		return "", fmt.Errorf("looking at muster's own program: %w", err)
	}
	module, err := os.ReadFile(filepath.Join(tree, "go.mod"))
	if first, _, _ := strings.Cut(string(module), "\n"); err != nil || first != "module muster.dev/muster" {
		return "", fmt.Errorf("this program is in %s, and not in the tree that it was built from", filepath.Dir(program))
	}
	for _, name := range []string{".", "Makefile", "go.mod", "tools", "tools/build.sh", "tools/buildsteps.sh", "tools/packages.sh"} {
		path := filepath.Join(tree, name)
		info, err := os.Stat(path)
		if err != nil {
			return "", fmt.Errorf("%s is not the whole of the sources: %w", tree, err)
		}
		if owner := ownerOf(info); owner != 0 && owner != ownerOf(own) || info.Mode().Perm()&0o002 != 0 {
			return "", fmt.Errorf("%s belongs to another user than %s, or everybody may write it: nothing is run there", path, program)
		}
	}
	return tree, nil
}

// ownerOf is the id of the user that owns a file.
func ownerOf(info os.FileInfo) uint32 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Uid
	}
	return ^uint32(0)
}

// runMake makes a target in a tree. Whatever it says is talk: the output of this command is data.
func runMake(ctx context.Context, tree, target string, talk io.Writer) error {
	cmd := exec.CommandContext(ctx, "make", "-C", tree, target)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it may be interrupted at any time
	cmd.Stdout, cmd.Stderr = talk, talk
	return cmd.Run()
}
