// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"fmt"
	"go/ast"
	gotoken "go/token"
	"os"
	"slices"
	"strconv"
	"strings"
)

// findCodes finds the codes that faults are made with, and those that answers have for a part of a request.
func (s *codeSources) findCodes() {
	makes := func(in codeScope, e ast.Expr) bool {
		selector, ok := e.(*ast.SelectorExpr)
		return ok && in.imported(selector.X) == faults && (selector.Sel.Name == "Errorf" || selector.Sel.Name == "Nulls")
	}
	called := map[ast.Node]bool{}
	s.each(func(in codeScope, node ast.Node) {
		switch n := node.(type) {
		case *ast.CallExpr:
			if makes(in, n.Fun) {
				called[n.Fun] = true
				s.resolve(in, n.Args[0])
			}
		case *ast.SelectorExpr:
			if makes(in, n) && !called[n] {
				s.fail(in, n) // it is passed on
			}
		case *ast.CompositeLit:
			if makesFault(in, n) {
				s.resolve(in, fieldOf(n, "Code", -1))
			}
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if field, ok := left.(*ast.SelectorExpr); ok && (field.Sel.Name == "Code" || field.Sel.Name == "FailureCode") && len(n.Rhs) == len(n.Lhs) {
					s.resolve(in, n.Rhs[i])
				}
			}
		}
	})
}

// makesFault reports whether a literal is of the type of faults.
func makesFault(in codeScope, literal *ast.CompositeLit) bool {
	made, ok := literal.Type.(*ast.SelectorExpr)
	return ok && made.Sel.Name == "Error" && in.imported(made.X) == faults
}

// fieldOf is the value of a field in a literal of a struct, or nil.
func fieldOf(literal *ast.CompositeLit, name string, at int) ast.Expr {
	for i, element := range literal.Elts {
		pair, keyed := element.(*ast.KeyValueExpr)
		if !keyed {
			if i == at {
				return element
			}
			continue
		}
		if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name {
			return pair.Value
		}
	}
	return nil
}

func (s *codeSources) once(kind string, parts ...any) bool {
	key := kind + fmt.Sprint(parts...)
	first := !s.done[key]
	s.done[key] = true
	return first
}

// resolve finds the codes that an expression can be.
func (s *codeSources) resolve(in codeScope, expression ast.Expr) {
	switch e := expression.(type) {
	case *ast.ParenExpr:
		s.resolve(in, e.X)
		return
	case *ast.BasicLit:
		if code, err := strconv.Unquote(e.Value); err == nil && e.Kind == gotoken.STRING {
			s.found(in, code, e)
			return
		}
	case *ast.Ident:
		if s.resolveName(in, e) {
			return
		}
	case *ast.SelectorExpr:
		if s.resolveSelector(in, e) {
			return
		}
	case *ast.CallExpr:
		if name, ok := e.Fun.(*ast.Ident); ok && s.resolveResults(in, name.Name) {
			return
		}
	case nil:
		return // a fault without a code
	}
	s.fail(in, expression)
}

func (s *codeSources) found(in codeScope, code string, at ast.Node) {
	if code == "" {
		return
	}
	if s.of[in.pkg.path] == nil {
		s.of[in.pkg.path] = map[string][]string{}
	}
	place := s.place(at)
	if !slices.Contains(s.of[in.pkg.path][code], place) {
		s.of[in.pkg.path][code] = append(s.of[in.pkg.path][code], place)
	}
}

func (s *codeSources) place(at ast.Node) string {
	position := s.files.Position(at.Pos())
	return fmt.Sprintf("%s:%d", strings.TrimPrefix(position.Filename, repository+"/"), position.Line)
}

func (s *codeSources) fail(in codeScope, expression ast.Expr) {
	text := s.textOf(expression)
	if in.function != nil {
		text = in.function.Name.Name + " " + text
	}
	text = strings.TrimPrefix(in.pkg.path, module) + " " + text
	codes, known := codesUnresolved[text]
	if !known {
		s.unresolved[s.place(expression)] = text
	}
	s.looked[text] = true
	for _, code := range codes {
		s.found(in, code, expression)
	}
}

// textOf is an expression as it is written.
func (s *codeSources) textOf(expression ast.Expr) string {
	from, to := s.files.Position(expression.Pos()), s.files.Position(expression.End())
	text, err := os.ReadFile(from.Filename)
	if err != nil {
		return err.Error()
	}
	return string(text[from.Offset:to.Offset])
}

// resolveName resolves a parameter, a variable or a constant, in this order.
func (s *codeSources) resolveName(in codeScope, name *ast.Ident) bool {
	if in.function != nil {
		if at, ok := parameterAt(in.function, name.Name); ok {
			return s.resolveArguments(in, in.function, at)
		}
		if s.resolveVariable(in, name.Name) {
			return true
		}
	}
	value, ok := in.pkg.constants[name.Name]
	if ok {
		s.resolve(codeScope{pkg: in.pkg, file: s.fileOf(in.pkg, value)}, value)
	}
	return ok
}

func (s *codeSources) fileOf(p *codePackage, node ast.Node) *ast.File {
	for _, file := range p.files {
		if file.FileStart <= node.Pos() && node.Pos() < file.FileEnd {
			return file
		}
	}
	return nil
}

func parameterAt(f *ast.FuncDecl, name string) (int, bool) {
	at := 0
	for _, field := range f.Type.Params.List {
		for _, n := range field.Names {
			if n.Name == name {
				return at, true
			}
			at++
		}
	}
	return 0, false
}

// resolveArguments resolves what a function is called with. A function that is passed on as a value is not resolved.
func (s *codeSources) resolveArguments(in codeScope, f *ast.FuncDecl, at int) bool {
	if !s.once("arguments", in.pkg.path, f.Name.Name, at) {
		return true
	}
	calls, passedOn := 0, false
	other := map[ast.Node]bool{} // names that are not the function, or are called
	s.each(func(where codeScope, node ast.Node) {
		switch n := node.(type) {
		case *ast.FuncDecl:
			other[n.Name] = true
		case *ast.Field:
			for _, name := range n.Names {
				other[name] = true
			}
		case *ast.CallExpr:
			if called := where.called(n, in.pkg, f); called != nil && at < len(n.Args) {
				calls++
				other[called] = true
				s.resolve(where, n.Args[at])
			}
		case *ast.SelectorExpr:
			imported := where.imported(n.X)
			if n.Sel.Name == f.Name.Name && (imported == in.pkg.path || f.Recv != nil && imported == "" && where.pkg.sees(in.pkg)) {
				passedOn = passedOn || !other[n.Sel]
			}
			other[n.Sel] = true
		case *ast.KeyValueExpr:
			other[n.Key] = true
		case *ast.Ident:
			if n.Name == f.Name.Name && f.Recv == nil && where.pkg == in.pkg && !other[n] && !where.declares(n.Name) {
				passedOn = true
			}
		}
	})
	return calls > 0 && !passedOn
}

// called is the name by which a call calls a function, or nil.
func (in codeScope) called(call *ast.CallExpr, p *codePackage, f *ast.FuncDecl) *ast.Ident {
	function := call.Fun
	if generic, ok := function.(*ast.IndexExpr); ok {
		function = generic.X
	}
	switch c := function.(type) {
	case *ast.Ident:
		if in.pkg == p && f.Recv == nil && c.Name == f.Name.Name {
			return c
		}
	case *ast.SelectorExpr:
		imported := in.imported(c.X)
		if c.Sel.Name == f.Name.Name && (imported == p.path || f.Recv != nil && imported == "" && in.pkg.sees(p)) {
			return c.Sel
		}
	}
	return nil
}

// sees reports whether methods and fields of another package may stand in this one without its name: they do in
// packages of EC2.
func (p *codePackage) sees(other *codePackage) bool {
	return p == other || isOurs(p.path) && isOurs(other.path)
}

// declares reports whether the function around a place has a variable, a parameter or a field of a name.
func (in codeScope) declares(name string) (found bool) {
	if in.function == nil {
		return false
	}
	is := func(expressions ...ast.Expr) {
		for _, e := range expressions {
			id, ok := e.(*ast.Ident)
			found = found || ok && id.Name == name
		}
	}
	ast.Inspect(in.function, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.AssignStmt:
			if n.Tok == gotoken.DEFINE {
				is(n.Lhs...)
			}
		case *ast.RangeStmt:
			is(n.Key, n.Value)
		case *ast.Field:
			for _, field := range n.Names {
				is(field)
			}
		case *ast.ValueSpec:
			for _, variable := range n.Names {
				is(variable)
			}
		}
		return true
	})
	return found
}

// resolveVariable resolves all that a variable or constant of a function is set to.
func (s *codeSources) resolveVariable(in codeScope, name string) bool {
	if !in.declares(name) {
		return false
	}
	if !s.once("variable", in.pkg.path, in.function.Pos(), name) {
		return true
	}
	resolved := false
	set := func(names, values []ast.Expr) {
		for i, n := range names {
			if id, ok := n.(*ast.Ident); !ok || id.Name != name {
				continue
			}
			resolved = true
			switch {
			case len(values) == len(names):
				s.resolve(in, values[i])
			case len(values) > 0:
				s.fail(in, n)
			}
		}
	}
	ast.Inspect(in.function.Body, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.AssignStmt:
			set(n.Lhs, n.Rhs)
		case *ast.RangeStmt:
			set([]ast.Expr{n.Key, n.Value}, []ast.Expr{n.X})
		case *ast.ValueSpec:
			names := make([]ast.Expr, len(n.Names))
			for i := range n.Names {
				names[i] = n.Names[i]
			}
			set(names, n.Values)
		}
		return true
	})
	return resolved
}

// resolveSelector resolves a constant of another package, or a field by all that it is set to.
func (s *codeSources) resolveSelector(in codeScope, e *ast.SelectorExpr) bool {
	if imported := in.imported(e.X); imported != "" {
		other := s.packages[imported]
		if other == nil || other.constants[e.Sel.Name] == nil {
			return false
		}
		value := other.constants[e.Sel.Name]
		s.resolve(codeScope{pkg: other, file: s.fileOf(other, value)}, value)
		return true
	}
	if !s.once("field", in.pkg.path, e.Sel.Name) {
		return true
	}
	literals := 0
	for _, of := range s.packages {
		if !in.pkg.sees(of) {
			continue
		}
		for name, at := range of.structsWith(e.Sel.Name) {
			s.eachLiteral(of, name, func(where codeScope, literal *ast.CompositeLit) {
				literals++
				s.resolve(where, fieldOf(literal, e.Sel.Name, at))
			})
		}
	}
	s.each(func(where codeScope, node ast.Node) {
		if set, ok := node.(*ast.AssignStmt); ok && where.pkg.sees(in.pkg) {
			for i, left := range set.Lhs {
				if field, ok := left.(*ast.SelectorExpr); ok && field.Sel.Name == e.Sel.Name && len(set.Rhs) == len(set.Lhs) {
					s.resolve(where, set.Rhs[i])
				}
			}
		}
	})
	return literals > 0
}

// structsWith are the types that have a field, and the field's number in them.
func (p *codePackage) structsWith(field string) map[string]int {
	found := map[string]int{}
	for _, file := range p.files {
		ast.Inspect(file, func(node ast.Node) bool {
			declared, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			structure, ok := declared.Type.(*ast.StructType)
			if !ok {
				return true
			}
			at := 0
			for _, f := range structure.Fields.List {
				for _, n := range f.Names {
					if n.Name == field {
						found[declared.Name.Name] = at
					}
					at++
				}
				if len(f.Names) == 0 {
					at++
				}
			}
			return true
		})
	}
	return found
}

// eachLiteral visits the literals of a type, and those of maps and lists of it that leave the type's name out.
func (s *codeSources) eachLiteral(p *codePackage, name string, visit func(codeScope, *ast.CompositeLit)) {
	is := func(in codeScope, kind ast.Expr) bool {
		switch k := kind.(type) {
		case *ast.Ident:
			return in.pkg == p && k.Name == name
		case *ast.SelectorExpr:
			return in.imported(k.X) == p.path && k.Sel.Name == name
		}
		return false
	}
	s.each(func(in codeScope, node ast.Node) {
		literal, ok := node.(*ast.CompositeLit)
		if !ok {
			return
		}
		if is(in, literal.Type) && len(literal.Elts) > 0 { // an empty one has no code
			visit(in, literal)
		}
		var element ast.Expr
		switch k := literal.Type.(type) {
		case *ast.MapType:
			element = k.Value
		case *ast.ArrayType:
			element = k.Elt
		}
		if !is(in, element) {
			return
		}
		for _, item := range literal.Elts {
			if pair, ok := item.(*ast.KeyValueExpr); ok {
				item = pair.Value
			}
			if inner, ok := item.(*ast.CompositeLit); ok && inner.Type == nil {
				visit(in, inner)
			}
		}
	})
}

// resolveResults resolves what a function of the package returns.
func (s *codeSources) resolveResults(in codeScope, name string) bool {
	functions := in.pkg.functions[name]
	if len(functions) != 1 || functions[0].Type.Results.NumFields() != 1 {
		return false
	}
	if !s.once("results", in.pkg.path, name) {
		return true
	}
	where := codeScope{pkg: in.pkg, file: s.fileOf(in.pkg, functions[0]), function: functions[0]}
	ast.Inspect(functions[0].Body, func(node ast.Node) bool {
		if r, ok := node.(*ast.ReturnStmt); ok && len(r.Results) == 1 {
			s.resolve(where, r.Results[0])
		}
		return true
	})
	return true
}
