// SPDX-License-Identifier: Apache-2.0

// Package muster_test checks the structure that ARCHITECTURE.md describes: which package may import which, and what all
// of them have in common.
package muster_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "muster.dev/muster"

// impure are the packages that a pure one has no use for.
var impure = []string{
	"context", "log", "log/slog", "net/http", "os", "os/exec", "os/signal", "syscall", "testing",
	"golang.org/x/sys/unix", "k8s.io/client-go/kubernetes", "sigs.k8s.io/controller-runtime",
}

// allowed are imports that break a rule for a reason.
var allowed = map[[2]string]string{
	{"internal/plane/component", module + "/internal/platform/statedir"}:      "for the names of paths; nothing in it is called that looks at a disk",
	{"internal/plane/component", module + "/internal/certificates/authority"}: "for the type Credential, which is plain data, and the names of authorities",
	{"internal/certificates/token", "log/slog"}:                               "for LogValue, which keeps the secret half of a token out of every log",
	{"internal/aws/sigv4", "log/slog"}:                                        "for LogValue, which keeps keys and signatures out of every log",
	{"internal/iam/ststoken", "log/slog"}:                                     "for LogValue, which keeps tokens out of every log",
	{"internal/iam/iam", "log/slog"}:                                          "for LogValue, which keeps secret access keys out of every log",
	{"internal/certificates/pki/pkitest", "testing"}:                          "it makes requests for tests",
}

// source is one Go file.
type source struct {
	path    string // from the root, with slashes
	dir     string
	test    bool
	first   string // line
	file    *ast.File
	set     *token.FileSet    // for positions in file
	imports map[string]string // path to the name it has in the file
}

// licensed reports whether the file has a comment with that line before its package clause.
func (s source) licensed(line string) bool {
	return slices.ContainsFunc(s.file.Comments, func(group *ast.CommentGroup) bool {
		return group.Pos() < s.file.Package && slices.ContainsFunc(group.List, func(c *ast.Comment) bool { return strings.Contains(c.Text, strings.TrimPrefix(line, "// ")) })
	})
}

// isPure reports whether a directory's package turns values into values.
func (h house) isPure(dir string) bool {
	name, internal := strings.CutPrefix(dir, "internal/")
	return dir == "api" || strings.HasPrefix(dir, "api/") || internal && h.packages[name] == "pure"
}

// sources are all Go files of the repository, of the nested modules too.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	set := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			if name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") {
			return nil
		}
		raw, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(set, name, raw, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		first, _, _ := strings.Cut(string(raw), "\n")
		s := source{path: filepath.ToSlash(name), dir: path.Dir(filepath.ToSlash(name)), test: strings.HasSuffix(base, "_test.go"), first: first, file: file, set: set, imports: map[string]string{}}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			s.imports[imported] = path.Base(imported)
			if spec.Name != nil {
				s.imports[imported] = spec.Name.Name
			}
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("found %d Go files only: the tests look in the wrong place", len(all))
	}
	return all
}

func TestImportsGoOneWay(t *testing.T) {
	h := standing(t)
	used := map[[2]string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for imported := range s.imports {
			rule := [2]string{s.dir, imported}
			if _, ok := allowed[rule]; ok {
				used[rule] = true
				continue
			}
			if problem := h.problem(s.dir, imported); problem != "" {
				t.Errorf("%s imports %s: %s", s.path, imported, problem)
			}
		}
	}
	for rule, reason := range allowed {
		if !used[rule] {
			t.Errorf("%s no longer imports %s: remove it from the exceptions (%s)", rule[0], rule[1], reason)
		}
	}
}

// problem says why the package of a directory must not import another package, or "".
func (h house) problem(from, imported string) string {
	if h.isPure(from) && slices.Contains(impure, imported) {
		return "the package is pure"
	}
	to, ours := strings.CutPrefix(imported, module+"/")
	if !ours {
		return ""
	}
	fromName, fromInternal := strings.CutPrefix(from, "internal/")
	toName, toInternal := strings.CutPrefix(to, "internal/")
	isAPI := func(dir string) bool { return dir == "api" || strings.HasPrefix(dir, "api/") }
	switch {
	case fromInternal && toInternal:
		return h.refuses(fromName, toName)
	case toInternal && isAPI(from) && !h.isPure(to):
		return "kinds are pure"
	case toInternal || isAPI(to):
		return ""
	case !fromInternal && !isAPI(from) && within(from, to):
		return ""
	}
	return "a command is nobody's library"
}

// within reports whether two directories belong to the same program or the same tree of tests and tools.
func within(a, b string) bool {
	top := func(dir string) string {
		first, rest, _ := strings.Cut(dir, "/")
		if first == "cmd" {
			second, _, _ := strings.Cut(rest, "/")
			return first + "/" + second
		}
		return first
	}
	return top(a) == top(b)
}

// A result that depends on the moment cannot be pinned by a test; the caller of a pure function says what time it is.
func TestPurePackagesAreToldTheTime(t *testing.T) {
	h := standing(t)
	for _, s := range sources(t) {
		name, ok := s.imports["time"]
		if s.test || !ok || !h.isPure(s.dir) {
			continue
		}
		ast.Inspect(s.file, func(node ast.Node) bool {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := selector.X.(*ast.Ident); ok && x.Name == name && slices.Contains([]string{"Now", "Since", "Until", "After", "Tick", "Sleep", "NewTimer", "NewTicker", "AfterFunc"}, selector.Sel.Name) {
				t.Errorf("%s uses time.%s", s.path, selector.Sel.Name)
			}
			return true
		})
	}
}

// The upstream binary is built from upstream's module versions alone, and muster is free in its own. The program that
// talks to a PKCS #11 token holds the token's PIN, so it contains no other code.
func TestNestedModulesStandAlone(t *testing.T) {
	for _, name := range []string{"kubernetes", "etcd", "pkcs11"} {
		checked := 0
		for _, s := range sources(t) {
			if !strings.HasPrefix(s.path, name+"/") {
				continue
			}
			checked++
			for imported := range s.imports {
				if imported == module || strings.HasPrefix(imported, module+"/") {
					t.Errorf("%s imports %s", s.path, imported)
				}
			}
		}
		raw, err := os.ReadFile(name + "/go.mod") // of kubernetes, the default's
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			if strings.Contains(line, module) && !strings.HasPrefix(line, "module ") {
				t.Errorf("%s/go.mod: %s", name, line)
			}
		}
		if checked == 0 {
			t.Errorf("%s/ has no Go files", name)
		}
	}
}

func TestEveryPackageIsExplained(t *testing.T) {
	explained := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		// The files of one system only are as good as any: go/build decides which belong to a package elsewhere.
		explained[s.dir] = explained[s.dir] || s.file.Doc != nil && strings.TrimSpace(s.file.Doc.Text()) != ""
	}
	for dir, ok := range explained {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
		pkg, err := build.ImportDir(dir, build.ImportComment)
		if err != nil {
			t.Errorf("package %s: %v", dir, err)
			continue
		}
		if want := "Package " + pkg.Name + " "; ok && !pkg.IsCommand() && !strings.HasPrefix(pkg.Doc, want) {
			t.Errorf("package %s: its comment begins with %q, not with %q", dir, pkg.Doc, want)
		}
	}
}

func TestEveryFile(t *testing.T) {
	const license = "// SPDX-License-Identifier: Apache-2.0"
	for _, s := range sources(t) {
		if s.first != license && (!ast.IsGenerated(s.file) || !strings.HasPrefix(s.first, "//go:build ") || !s.licensed(license)) {
			t.Errorf("%s begins with %q, not with %q", s.path, s.first, license)
		}
		// A name that says nothing attracts everything.
		if name := strings.TrimSuffix(s.file.Name.Name, "_test"); slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "lib"}, name) {
			t.Errorf("%s: package %s says nothing", s.path, name)
		}
		for _, declaration := range s.file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil && function.Name.Name == "init" {
				t.Errorf("%s has an init function: who imports it cannot see what it does", s.path)
			}
		}
	}
}
