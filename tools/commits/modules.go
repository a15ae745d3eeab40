// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// goFlags are those of the Makefile's AS_BUILT.
const goFlags = "-trimpath -buildvcs=false -gcflags=all=-dwarf=false"

// tags are those with which every file of the stories belongs to its package (.golangci.yml has the same).
const tags = "soak"

// cgo are the modules that only build with cgo.
var cgo = []string{"pkcs11", "runtime/runc"}

// endPatience is the time for the go command to remove its temporary files once its own time is over.
const endPatience = 10 * time.Second

// module is a directory of a worktree with a go.mod.
type module struct {
	root, dir string // dir is relative to root
}

// hasSources reports whether there is a file of Go in a module.
func (m module) hasSources() (has bool, err error) {
	own := filepath.Join(m.root, m.dir)
	err = filepath.WalkDir(own, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != own:
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
				return fs.SkipDir
			}
		case strings.HasSuffix(name, ".go"):
			has = true
			return fs.SkipAll
		}
		return nil
	})
	return has, err
}

// command is what the user runs to see a failure again.
func (m module) command(command string) string {
	if m.dir == "." {
		return command
	}
	return command + " in " + m.dir
}

// goCommand runs the go command in a module and returns both its outputs. When the context ends, so does every process
// that it has started.
func (m module) goCommand(ctx context.Context, stdout io.Writer, args ...string) (talk string, err error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(m.root, m.dir)
	enabled := "0"
	if slices.Contains(cgo, m.dir) {
		enabled = "1"
	}
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS="+goFlags, "CGO_ENABLED="+enabled)
	var complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = stdout, &complaints
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = endPatience
	err = cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // compilers that did not listen
	}
	return complaints.String(), err
}

// list resolves the imports of all packages of a module and of their tests, with and without the stories' tags, and
// returns what go says of those that do not exist.
func (m module) list(ctx context.Context) (complaint string, err error) {
	for _, with := range []string{"", tags} {
		if talk, err := m.goCommand(ctx, io.Discard, "list", "-deps", "-test", "-tags="+with, "./..."); err != nil {
			return complain(ctx, talk, err)
		}
	}
	return "", nil
}

// vet vets packages, and returns what go says against them.
func (m module) vet(ctx context.Context, packages []string) (complaint string, err error) {
	talk, err := m.goCommand(ctx, io.Discard, append([]string{"vet", "-tags=" + tags}, packages...)...)
	if err != nil {
		return complain(ctx, talk, err)
	}
	return "", nil
}

// complain tells the go command's complaint about a commit from a go command that could not run or was not left the
// time.
func complain(ctx context.Context, talk string, err error) (string, error) {
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case !errors.As(err, &exit):
		return "", fmt.Errorf("running go: %w", err)
	case strings.TrimSpace(talk) == "":
		return err.Error(), nil
	}
	return talk, nil
}

// goPackage is a package as `go list -json` describes it.
type goPackage struct {
	ImportPath, Dir                    string
	Imports, TestImports, XTestImports []string
}

// packages are those of a module.
func (m module) packages(ctx context.Context) ([]goPackage, error) {
	var out bytes.Buffer
	talk, err := m.goCommand(ctx, &out, "list", "-tags="+tags, "-json=ImportPath,Dir,Imports,TestImports,XTestImports", "./...")
	if err != nil {
		return nil, fmt.Errorf("listing the packages of module %s: %w: %s", m.dir, err, talk)
	}
	var all []goPackage
	for decoder := json.NewDecoder(&out); ; {
		var p goPackage
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("reading the packages of module %s: %w", m.dir, err)
		}
		all = append(all, p)
	}
}

// stands reports whether a module can only be broken by a change of its own files: it has no way to the packages of the
// root module.
func (m module) stands(rootPath string) (bool, error) {
	raw, err := os.ReadFile(filepath.Join(m.root, m.dir, "go.mod"))
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(raw)) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "module" && slices.Contains(words, rootPath) {
			return false, nil
		}
	}
	return true, nil
}

// path is the module's name in its go.mod.
func (m module) path() (string, error) {
	raw, err := os.ReadFile(filepath.Join(m.root, m.dir, "go.mod"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(raw)) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == "module" {
			return words[1], nil
		}
	}
	return "", fmt.Errorf("%s has no module line", path.Join(m.dir, "go.mod"))
}

// owner is the module, of those in the given directories, that a file belongs to; "" if none.
func owner(modules []string, file string) string {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if slices.Contains(modules, dir) {
			return dir
		}
		if dir == "." {
			return ""
		}
	}
}
