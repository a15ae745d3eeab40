// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// source is the Go code of one service's client.
type source struct {
	module string // with its version
	dir    string
	files  map[string]*ast.File // by name, without tests
}

// read parses the client of a service as this module requires it.
func read(ctx context.Context, name string) (*source, error) {
	module := "github.com/aws/aws-sdk-go-v2/service/" + name
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}} {{.Version}}", module).Output()
	if err != nil {
		return nil, fmt.Errorf("looking for %s: %w", module, err)
	}
	dir, version, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	s := &source{module: module + "@" + version, dir: dir, files: map[string]*ast.File{}}
	if dir == "" {
		return nil, fmt.Errorf("%s is not downloaded", s.module)
	}
	for _, pattern := range []string{"*.go", "types/*.go", "schemas/*.go"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			short, _ := filepath.Rel(dir, name)
			s.files[short] = file
		}
	}
	return s, nil
}

// functions calls f for each function of the files that the prefix fits.
func (s *source) functions(prefix string, f func(*ast.FuncDecl)) {
	for name, file := range s.files {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Body != nil {
				f(function)
			}
		}
	}
}

// calls hands each call below a node to f.
func calls(node ast.Node, f func(name string, call *ast.CallExpr)) {
	ast.Inspect(node, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			f(dotted(call.Fun), call)
		}
		return true
	})
}

// dotted is an identifier or selector as it is written: smithy.NewSchema.
func dotted(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return dotted(e.X) + "." + e.Sel.Name
	}
	return ""
}

// literal is the value of a string literal, or "".
func literal(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return text
}

// fields are the values of a composite literal by their keys.
func fields(e ast.Expr) map[string]ast.Expr {
	if unary, ok := e.(*ast.UnaryExpr); ok {
		e = unary.X
	}
	found := map[string]ast.Expr{}
	composite, ok := e.(*ast.CompositeLit)
	if !ok {
		return found
	}
	for _, element := range composite.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			found[dotted(pair.Key)] = pair.Value
		}
	}
	return found
}

// required are the fields that the client insists on, by the Go names of structures.
func (s *source) required() map[string][]string {
	found := map[string][]string{}
	s.functions("validators.go", func(f *ast.FuncDecl) {
		context := ""
		ast.Inspect(f, func(n ast.Node) bool {
			if composite, ok := n.(*ast.CompositeLit); ok && dotted(composite.Type) == "smithy.InvalidParamsError" {
				context = literal(fields(composite)["Context"])
			}
			return true
		})
		calls(f, func(name string, call *ast.CallExpr) {
			if name == "smithy.NewErrParamRequired" && context != "" {
				found[context] = append(found[context], literal(call.Args[0]))
			}
		})
	})
	return found
}

// tokens are the fields that the client fills in by itself, by the names of operations.
func (s *source) tokens() map[string]string {
	found := map[string]string{}
	s.functions("api_op_", func(f *ast.FuncDecl) {
		if f.Name.Name != "HandleInitialize" || f.Recv == nil {
			return
		}
		star, ok := f.Recv.List[0].Type.(*ast.StarExpr)
		if !ok {
			return
		}
		operation, ok := strings.CutPrefix(dotted(star.X), "idempotencyToken_initializeOp")
		if !ok {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if assign, ok := n.(*ast.AssignStmt); ok && len(assign.Lhs) == 1 {
				if field, ok := strings.CutPrefix(dotted(assign.Lhs[0]), "input."); ok {
					found[operation] = field
				}
			}
			return true
		})
	})
	return found
}
