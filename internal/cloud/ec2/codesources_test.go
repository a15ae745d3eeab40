// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// codeSources are parsed packages, and the codes that are found in them.
type codeSources struct {
	files    *gotoken.FileSet
	packages map[string]*codePackage

	of         map[string]map[string][]string // places, by package and code
	unresolved map[string]string              // expressions by place
	looked     map[string]bool                // entries of codesUnresolved that are needed
	done       map[string]bool                // parameters, fields, variables and functions that are resolved already
}

type codePackage struct {
	path      string
	files     map[string]*ast.File
	functions map[string][]*ast.FuncDecl // with methods, which are told apart by their names only
	constants map[string]ast.Expr
}

// codeScope is where an expression stands.
type codeScope struct {
	pkg      *codePackage
	file     *ast.File
	function *ast.FuncDecl // nil outside functions
}

// readSources parses the packages of EC2, and those that codesOfOthers names. Each package of this module below this
// one that makes faults must be in it or in codesElsewhere.
func readSources(t *testing.T) *codeSources {
	t.Helper()
	s := &codeSources{
		files: gotoken.NewFileSet(), packages: map[string]*codePackage{}, of: map[string]map[string][]string{}, unresolved: map[string]string{},
		looked: map[string]bool{}, done: map[string]bool{},
	}
	refuses := map[string]bool{}
	queue, seen := []string{ours}, map[string]bool{ours: true}
	for len(queue) > 0 {
		pkg := queue[0]
		queue = queue[1:]
		mode := parser.ImportsOnly
		_, wanted := codesOfOthers[pkg]
		wanted = wanted || isOurs(pkg)
		if wanted {
			mode = parser.SkipObjectResolution
		}
		p := &codePackage{path: pkg, files: map[string]*ast.File{}, functions: map[string][]*ast.FuncDecl{}, constants: map[string]ast.Expr{}}
		for _, name := range goFiles(t, filepath.Join(repository, strings.TrimPrefix(pkg, module)), false) {
			file, err := parser.ParseFile(s.files, name, nil, mode)
			if err != nil {
				t.Fatal(err)
			}
			p.add(file, name)
			for _, spec := range file.Imports {
				imported, _ := strconv.Unquote(spec.Path.Value)
				refuses[pkg] = refuses[pkg] || imported == faults
				if strings.HasPrefix(imported, module) && !seen[imported] {
					seen[imported] = true
					queue = append(queue, imported)
				}
			}
		}
		if wanted {
			s.packages[pkg] = p
		}
	}
	for pkg := range codesOfOthers {
		if s.packages[pkg] == nil {
			t.Errorf("codesOfOthers has %s, which EC2 does not import: remove it", pkg)
		}
	}
	for pkg := range codesElsewhere {
		if !refuses[pkg] {
			t.Errorf("codesElsewhere has %s, which EC2 does not import, or which makes no faults: remove it", pkg)
		}
	}
	for pkg := range refuses {
		if refuses[pkg] && s.packages[pkg] == nil && codesElsewhere[pkg] == "" && !onlyPassesFaults(t, pkg) {
			t.Errorf("%s makes faults: name it in codesOfOthers or codesElsewhere", pkg)
		}
	}
	return s
}

// isOurs reports whether a package has actions of EC2.
func isOurs(pkg string) bool { return pkg == ours || strings.HasPrefix(pkg, ours+"/") }

// onlyPassesFaults reports whether a package names no more of awsfault than its type, as codecs do.
func onlyPassesFaults(t *testing.T, pkg string) bool {
	t.Helper()
	for _, name := range goFiles(t, filepath.Join(repository, strings.TrimPrefix(pkg, module)), false) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`awsfault\.(Errorf|Nulls)|awsfault\.Error\{`).Match(text) {
			return false
		}
	}
	return true
}

// goFiles are the Go files of a directory: its tests, or all others.
func goFiles(t *testing.T, directory string, tests bool) []string {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && strings.HasSuffix(e.Name(), "_test.go") == tests {
			names = append(names, filepath.Join(directory, e.Name()))
		}
	}
	return names
}

func (p *codePackage) add(file *ast.File, name string) {
	p.files[name] = file
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			p.functions[d.Name.Name] = append(p.functions[d.Name.Name], d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == gotoken.CONST && len(v.Values) == len(v.Names) {
					for i, n := range v.Names {
						p.constants[n.Name] = v.Values[i]
					}
				}
			}
		}
	}
}

// each visits all nodes of the packages.
func (s *codeSources) each(visit func(in codeScope, node ast.Node)) {
	for _, p := range s.packages {
		for _, file := range p.files {
			for _, declaration := range file.Decls {
				in := codeScope{pkg: p, file: file}
				in.function, _ = declaration.(*ast.FuncDecl)
				ast.Inspect(declaration, func(node ast.Node) bool {
					visit(in, node)
					return true
				})
			}
		}
	}
}

// imported is the package of this module that a name stands for in a file, or "".
func (in codeScope) imported(expression ast.Expr) string {
	name, ok := expression.(*ast.Ident)
	if !ok {
		return ""
	}
	for _, spec := range in.file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if (spec.Name == nil && path.Base(imported) == name.Name) || (spec.Name != nil && spec.Name.Name == name.Name) {
			return imported
		}
	}
	return ""
}
