// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// story is a test function of test/stories, as its source describes it.
type story struct {
	name  string
	file  string   // its path below the root of the repository
	about []string // directories below the root that the story is about
	needs string   // targets of make that build what the story needs besides `make build`; "" for nothing
	alone bool     // no other story runs beside it
	soak  bool     // `make soak` alone runs it
}

// Directives stand in the comment of a story's function: what it is about (packages, below internal/ where nothing else
// is said), and what it needs built.
const (
	aboutDirective = "//story:about "
	needsDirective = "//story:needs "
)

// readCatalogue reads the stories of a directory below root. Every problem is an error of its own.
func readCatalogue(root, dir string) ([]story, error) {
	paths, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil || len(paths) == 0 {
		return nil, errors.Join(fmt.Errorf("no stories in %s", dir), err)
	}
	var stories []story
	var problems []error
	for _, path := range paths {
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading stories: %w", err)
		}
		found, err := readStories(filepath.ToSlash(filepath.Join(dir, filepath.Base(path))), src)
		if err != nil {
			problems = append(problems, err)
		}
		stories = append(stories, found...)
	}
	for _, s := range stories {
		for _, about := range s.about {
			if info, err := os.Stat(filepath.Join(root, about)); err != nil || !info.IsDir() {
				problems = append(problems, fmt.Errorf("%s: %s is about %s, which is not a directory", s.file, s.name, about))
			}
		}
	}
	slices.SortFunc(stories, func(a, b story) int { return cmp.Compare(a.name, b.name) })
	return stories, errors.Join(problems...)
}

// readStories reads those of one file.
func readStories(path string, src []byte) ([]story, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("reading stories: %w", err)
	}
	soak := soakOnly(file)
	var stories []story
	var problems []error
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Recv != nil || !strings.HasPrefix(function.Name.Name, "Test") || function.Name.Name == "TestMain" {
			continue
		}
		s := story{name: function.Name.Name, file: path, alone: !parallel(function), soak: soak}
		if function.Doc != nil {
			for _, comment := range function.Doc.List {
				if about, ok := strings.CutPrefix(comment.Text, aboutDirective); ok {
					for pkg := range strings.FieldsSeq(about) {
						s.about = append(s.about, directory(pkg))
					}
				}
				if needs, ok := strings.CutPrefix(comment.Text, needsDirective); ok {
					s.needs = strings.TrimSpace(needs)
				}
			}
		}
		if len(s.about) == 0 {
			problems = append(problems, fmt.Errorf("%s: %s does not say what it is about: add a line %sPACKAGE... to its comment", path, s.name, aboutDirective))
		}
		stories = append(stories, s)
	}
	return stories, errors.Join(problems...)
}

// directory is where a package that a directive names is: below internal/, or where the name says.
func directory(pkg string) string {
	if rest, ok := strings.CutPrefix(pkg, "./"); ok {
		return rest
	}
	return "internal/" + pkg
}

// parallel reports whether a function calls t.Parallel itself.
func parallel(function *ast.FuncDecl) bool {
	return slices.ContainsFunc(function.Body.List, func(s ast.Stmt) bool {
		expression, ok := s.(*ast.ExprStmt)
		if !ok {
			return false
		}
		call, ok := expression.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		return ok && selector.Sel.Name == "Parallel"
	})
}

// soakOnly reports whether a file is built with the tag soak and not without it.
func soakOnly(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if comment.Pos() < file.Package && constraint.IsGoBuild(comment.Text) {
				expression, err := constraint.Parse(comment.Text)
				return err == nil && expression.Eval(func(tag string) bool { return tag == "soak" || tag == "linux" }) &&
					!expression.Eval(func(tag string) bool { return tag == "linux" })
			}
		}
	}
	return false
}
