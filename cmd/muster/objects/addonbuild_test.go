// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/addons/catalogue"
)

// builtTree makes a source tree with a program in it, and returns the program.
func builtTree(t *testing.T) string {
	t.Helper()
	tree := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module muster.dev/muster\n", "Makefile": "", "tools/build.sh": "", "tools/buildsteps.sh": "", "tools/packages.sh": "", "bin/muster": "",
	} {
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(tree, "bin", "muster")
}

// The build is offered on a terminal and agreed to by --yes; elsewhere nothing is changed, and the command is told.
func TestBuildOfAnAddon(t *testing.T) {
	t.Parallel()
	known, _ := catalogue.New().Find("traefik")
	for name, test := range map[string]struct {
		terminal, yes bool
		answer        string
		fails, idle   bool
		builds        bool
		says          string // by the error; "" for none
	}{
		"in a pipe":                 {says: "is not built here: `make -C TREE addons` builds it, which takes about 5 minutes on two processors the first time; with --yes this command runs it"},
		"with --yes":                {yes: true, builds: true},
		"on a terminal, yes":        {terminal: true, answer: "y\n", builds: true},
		"on a terminal, no":         {terminal: true, answer: "n\n", says: "nothing was built, and no add-on was made"},
		"on a terminal, nothing":    {terminal: true, answer: "\n", says: "nothing was built"},
		"on a terminal, an end":     {terminal: true, says: "nothing was built"},
		"on a terminal, with --yes": {terminal: true, yes: true, builds: true},
		"the build fails":           {yes: true, builds: true, fails: true, says: "building traefik by `make -C TREE addons`: exit status 2"},
		"it builds something else":  {yes: true, builds: true, idle: true, says: "made something else: traefik"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := builtTree(t)
			tree := filepath.Dir(filepath.Dir(program))
			built := false
			b := &builder{program: program, terminal: test.terminal, run: func(_ context.Context, in, target string, talk io.Writer) error {
				built = true
				if in != tree || target != "addons" {
					t.Errorf("make %s in %s", target, in)
				}
				_, _ = io.WriteString(talk, "compiling\n")
				if test.fails {
					return errors.New("exit status 2")
				}
				if test.idle {
					return nil
				}
				for _, file := range known.Files() {
					path := filepath.Join(tree, "bin", file)
					if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
						return err
					}
				}
				return nil
			}}
			var out, talk bytes.Buffer
			streams := terminal.Streams{In: strings.NewReader(test.answer), Out: &out, Err: &talk}
			err := b.ensure(t.Context(), known, streams, test.yes)
			said := ""
			if err != nil {
				said = strings.ReplaceAll(err.Error(), tree, "TREE")
			}
			if built != test.builds || !strings.Contains(said, test.says) || (err == nil) != (test.says == "") || out.Len() > 0 {
				t.Errorf("built %v, printed %q, error %q; want %q", built, &out, said, test.says)
			}
			if asked := strings.Contains(talk.String(), "about 5 minutes on two processors the first time. Run it now? [y/N] "); asked != (test.terminal && !test.yes) {
				t.Errorf("said %q", &talk)
			}
			if err != nil {
				return
			}
			built = false
			if err := b.ensure(t.Context(), known, streams, false); err != nil || built {
				t.Errorf("what is built is built again: %v, %v", built, err)
			}
		})
	}
}

// Nothing is run in a directory that is no source tree, or that others can write.
func TestSourceTree(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(tree string) error
		says   string
	}{
		"as it should be": {func(string) error { return nil }, ""},
		"no sources":      {func(tree string) error { return os.Remove(filepath.Join(tree, "go.mod")) }, "not in the tree that it was built from"},
		"another module": {func(tree string) error {
			return os.WriteFile(filepath.Join(tree, "go.mod"), []byte("module example.com/x\n"), 0o600)
		}, "not in the tree that it was built from"},
		"half of it":             {func(tree string) error { return os.Remove(filepath.Join(tree, "tools", "build.sh")) }, "is not the whole of the sources"},
		"everybody may write it": {func(tree string) error { return os.Chmod(tree, 0o777) }, "nothing is run there"},
		"or its Makefile":        {func(tree string) error { return os.Chmod(filepath.Join(tree, "Makefile"), 0o666) }, "nothing is run there"},
		"or what it builds with": {func(tree string) error { return os.Chmod(filepath.Join(tree, "tools"), 0o777) }, "nothing is run there"},
		"it is somebody else's":  {func(tree string) error { return os.Chown(filepath.Join(tree, "Makefile"), 65534, 65534) }, "nothing is run there"},
	} {
		program := builtTree(t)
		tree := filepath.Dir(filepath.Dir(program))
		if err := test.change(tree); errors.Is(err, os.ErrPermission) {
			continue // only root gives files away
		} else if err != nil {
			t.Fatal(err)
		}
		got, err := sourceTree(program)
		if test.says == "" && (err != nil || got != tree) || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.says)
		}
	}
}
