// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// queryReader reads clients of the query protocols, which are functions for each shape:
// awsEc2query_serializeDocumentTag and so on. Types of members are those of the Go structs, and names on the wire are
// in the functions.
type queryReader struct {
	source  *source
	table   *table
	structs map[string]*ast.StructType
	enums   map[string]bool
	in, out map[string]map[string]wire // structure → field
	lists   map[string][2]string       // list → names of its items, in and out
	codes   map[string]string          // error code → structure
	server  map[string]bool            // errors that are the server's fault
	version string
}

// wire is what a function says of a field.
type wire struct {
	name string
	list string
	flat bool
}

// queryTable reads the table of a service. Without operations it has all.
func queryTable(s *source, of service) (string, error) {
	operations := of.operations
	r := queryReader{
		source: s, table: &table{shapes: map[string]*shape{}}, structs: map[string]*ast.StructType{}, enums: map[string]bool{},
		in: map[string]map[string]wire{}, out: map[string]map[string]wire{}, lists: map[string][2]string{}, codes: map[string]string{}, server: map[string]bool{},
	}
	r.types()
	r.functions(of)
	if r.version == "" {
		return "", fmt.Errorf("%s: no version was found", s.module)
	}
	r.table.service = fmt.Sprintf("%s %s %s namespace=http://%s.amazonaws.com/doc/%s/", of.name, of.protocol, r.version, cmp.Or(of.signed, of.name), r.version)
	if of.identity {
		r.table.service = strings.Replace(r.table.service, "http:", "https:", 1) + " identity"
	}
	r.table.service += of.words()
	if operations == nil {
		for file := range s.files {
			if op, ok := strings.CutPrefix(file, "api_op_"); ok {
				operations = append(operations, strings.TrimSuffix(op, ".go"))
			}
		}
	}
	var roots []string
	tokens := s.tokens()
	for _, op := range operations {
		if r.structs[op+"Input"] == nil || r.structs[op+"Output"] == nil {
			return "", fmt.Errorf("%s has no operation %s", s.module, op)
		}
		in, err := r.root(op + "Input")
		if err != nil {
			return "", err
		}
		out, err := r.root(op + "Output")
		if err != nil {
			return "", err
		}
		if field := tokens[op]; field != "" {
			r.table.shapes[in].member(field).add("token")
		}
		r.table.operations = append(r.table.operations, fmt.Sprintf("operation %s %s %s", op, in, out))
		roots = append(roots, in, out)
	}
	for structure, name := range of.beyond {
		r.table.shapes[structure].members = append(r.table.shapes[structure].members, &member{name: name, shape: "string", words: []string{"beyond"}})
	}
	more, err := r.errors()
	if err != nil {
		return "", err
	}
	for structure, fields := range s.required() {
		for _, field := range fields {
			if made := r.table.shapes[structure]; made != nil && made.member(field) != nil {
				made.member(field).add("required")
			}
		}
	}
	return r.table.text(s.module, append(roots, more...))
}

// types finds the structs and enumerations.
func (r *queryReader) types() {
	for _, file := range r.source.files {
		for _, declaration := range file.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok || general.Tok != token.TYPE {
				continue
			}
			for _, spec := range general.Specs {
				named := spec.(*ast.TypeSpec)
				if structure, ok := named.Type.(*ast.StructType); ok {
					r.structs[named.Name.Name] = structure
				} else if dotted(named.Type) == "string" {
					r.enums[named.Name.Name] = true
				}
			}
		}
	}
}

// functions reads names on the wire, the errors of the operations, and which of them are the server's fault.
func (r *queryReader) functions(of service) {
	r.source.functions("serializers.go", func(f *ast.FuncDecl) {
		if name, ok := after(f.Name.Name, "_serializeOpDocument", "_serializeDocument"); ok {
			r.serializer(name, f)
			return
		}
		calls(f, func(name string, call *ast.CallExpr) {
			if inner, ok := call.Fun.(*ast.SelectorExpr); ok && len(call.Args) == 1 {
				if key, ok := inner.X.(*ast.CallExpr); ok && dotted(key.Fun) == "body.Key" && literal(key.Args[0]) == "Version" {
					r.version = literal(call.Args[0])
				}
			}
		})
	})
	r.source.functions("deserializers.go", func(f *ast.FuncDecl) {
		if name, ok := after(f.Name.Name, "_deserializeOpDocument", "_deserializeDocument"); ok {
			r.deserializer(name, f)
		}
		if op, ok := after(f.Name.Name, "_deserializeOpError"); ok && (of.operations == nil || slices.Contains(of.operations, op)) {
			r.errorCodes(f)
		}
	})
	r.source.functions("types/errors.go", func(f *ast.FuncDecl) {
		if f.Name.Name != "ErrorFault" {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && selector.Sel.Name == "FaultServer" {
				r.server[dotted(f.Recv.List[0].Type.(*ast.StarExpr).X)] = true
			}
			return true
		})
	})
}

// after is what follows the first of the words in a function's name.
func after(name string, words ...string) (string, bool) {
	for _, word := range words {
		if _, rest, ok := strings.Cut(name, word); ok {
			return rest, true
		}
	}
	return "", false
}

// serializer reads blocks of `objectKey := object.Key("Name"); objectKey.String(*v.Name)`, or a list's
// `value.Array("Name")`.
func (r *queryReader) serializer(name string, f *ast.FuncDecl) {
	fields := map[string]wire{}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		block, ok := n.(*ast.BlockStmt)
		if !ok || len(block.List) == 0 {
			return true
		}
		assign, ok := block.List[0].(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != 1 || dotted(assign.Lhs[0]) != "objectKey" {
			return true
		}
		call := assign.Rhs[0].(*ast.CallExpr)
		w := wire{name: literal(call.Args[0]), flat: dotted(call.Fun) == "object.FlatKey"}
		w.list, _ = called(block, "_serializeDocument")
		fields[selected(block, "v")] = w
		return true
	})
	if len(fields) > 0 {
		r.in[name] = fields
	}
	calls(f, func(function string, call *ast.CallExpr) {
		if function == "value.Array" {
			r.lists[name] = [2]string{literal(call.Args[0]), r.lists[name][1]}
		}
	})
}

// deserializer reads clauses of `case strings.EqualFold("name", t.Name.Local):`, of a structure or a list.
func (r *queryReader) deserializer(name string, f *ast.FuncDecl) {
	fields := map[string]wire{}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		clause, ok := n.(*ast.CaseClause)
		if !ok || len(clause.List) != 1 {
			return true
		}
		call, ok := clause.List[0].(*ast.CallExpr)
		if !ok || dotted(call.Fun) != "strings.EqualFold" || dotted(call.Args[1]) != "t.Name.Local" {
			return true
		}
		wireName := literal(call.Args[0])
		body := &ast.BlockStmt{List: clause.Body}
		field := selected(body, "sv")
		if field == "" {
			r.lists[name] = [2]string{r.lists[name][0], wireName}
			return true
		}
		list, _ := called(body, "_deserializeDocument")
		fields[field] = wire{name: wireName, list: list}
		return true
	})
	if len(fields) > 0 {
		r.out[name] = fields
	}
}

// errorCodes reads `case strings.EqualFold("Code", errorCode): return awsAwsquery_deserializeErrorShape(…)`.
func (r *queryReader) errorCodes(f *ast.FuncDecl) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		clause, ok := n.(*ast.CaseClause)
		if !ok || len(clause.List) != 1 {
			return true
		}
		if call, ok := clause.List[0].(*ast.CallExpr); ok && dotted(call.Fun) == "strings.EqualFold" {
			if name, ok := called(&ast.BlockStmt{List: clause.Body}, "_deserializeError"); ok {
				r.codes[literal(call.Args[0])] = name
			}
		}
		return true
	})
}

// selected is the first field of a variable that a block mentions.
func selected(block *ast.BlockStmt, variable string) (field string) {
	ast.Inspect(block, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok && field == "" && dotted(selector.X) == variable {
			field = selector.Sel.Name
		}
		return true
	})
	return field
}

// called is the shape of the first function of a kind that a block calls.
func called(block *ast.BlockStmt, kind string) (name string, ok bool) {
	calls(block, func(function string, _ *ast.CallExpr) {
		if rest, found := after(function, kind); found && !ok {
			name, ok = rest, true
		}
	})
	return name, ok
}

// root makes the shape of an input or output, or "-" if it has no members.
func (r *queryReader) root(name string) (string, error) {
	if err := r.structure(name); err != nil {
		return "", err
	}
	if len(r.table.shapes[name].members) == 0 {
		return "-", nil
	}
	return name, nil
}

func (r *queryReader) structure(name string) error {
	if r.table.shapes[name] != nil {
		return nil
	}
	made := &shape{kind: "structure"}
	r.table.shapes[name] = made
	for _, field := range r.structs[name].Fields.List {
		if len(field.Names) != 1 || field.Names[0].Name == "ResultMetadata" || field.Names[0].Name == "ErrorCodeOverride" {
			continue
		}
		fieldName := field.Names[0].Name
		in, isIn := r.in[name][fieldName]
		out, isOut := r.out[name][fieldName]
		if !isIn && !isOut {
			return fmt.Errorf("%s.%s is neither written nor read", name, fieldName)
		}
		typ, err := r.shapeOf(field.Type, in.list+strings.Repeat(out.list, btoi(in.list == "")))
		if err != nil {
			return fmt.Errorf("%s.%s: %w", name, fieldName, err)
		}
		m := &member{name: fieldName, shape: typ}
		if in.flat {
			m.add("flatin")
		}
		if isIn && in.name != fieldName {
			m.add("in=" + in.name)
		}
		if isOut && out.name != fieldName {
			m.add("out=" + out.name)
		}
		made.members = append(made.members, m)
	}
	return nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// shapeOf is the shape of a Go type; a list has the name of the function that writes or reads it.
func (r *queryReader) shapeOf(e ast.Expr, list string) (string, error) {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if array, ok := e.(*ast.ArrayType); ok {
		if dotted(array.Elt) == "byte" {
			return "blob", nil
		}
		item, err := r.shapeOf(array.Elt, "")
		if err != nil || r.table.shapes[list] != nil {
			return list, err
		}
		if list == "" {
			return "", fmt.Errorf("no function names the list")
		}
		made := &shape{kind: "list", item: item}
		if in := r.lists[list][0]; in != "" && in != "member" {
			made.words = append(made.words, "in="+in)
		}
		if out := r.lists[list][1]; out != "" && out != "member" {
			made.words = append(made.words, "out="+out)
		}
		r.table.shapes[list] = made
		return list, nil
	}
	if entries, ok := e.(*ast.MapType); ok {
		item, err := r.shapeOf(entries.Value, "")
		r.table.shapes[list] = &shape{kind: "map", item: item}
		return list, err
	}
	name := strings.TrimPrefix(dotted(e), "types.")
	if kind, ok := map[string]string{
		"string": "string", "bool": "boolean", "int32": "integer", "int64": "long", "float32": "float", "float64": "double", "time.Time": "timestamp",
	}[name]; ok {
		return kind, nil
	}
	if r.enums[name] {
		return "string", nil
	}
	if r.structs[name] == nil {
		return name, r.union(name)
	}
	return name, r.structure(name)
}

// union reads the members of an interface: each is a struct such as PolicyIdentifierMemberPolicyArn, and named so on
// the wire.
func (r *queryReader) union(name string) error {
	made := &shape{kind: "union"}
	if r.table.shapes[name] != nil {
		return nil
	}
	r.table.shapes[name] = made
	for _, structure := range slices.Sorted(maps.Keys(r.structs)) {
		memberName, ok := strings.CutPrefix(structure, name+"Member")
		if !ok {
			continue
		}
		typ, err := r.shapeOf(r.structs[structure].Fields.List[0].Type, "")
		if err != nil {
			return fmt.Errorf("%s: %w", structure, err)
		}
		made.members = append(made.members, &member{name: memberName, shape: typ})
	}
	if len(made.members) == 0 {
		return fmt.Errorf("type %s is not understood", name)
	}
	return nil
}

func (r *queryReader) errors() (roots []string, err error) {
	for code, name := range r.codes {
		if r.out[name] == nil { // the deserializer of an error's members is named like a structure's
			r.out[name] = map[string]wire{}
		}
		if _, ok := r.out[name]["Message"]; !ok {
			r.out[name]["Message"] = wire{name: "Message"}
		}
		if err := r.structure(name); err != nil {
			return nil, err
		}
		status := "400"
		if r.server[name] {
			status = "500"
		}
		r.table.errors = append(r.table.errors, fmt.Sprintf("error %s %s %s", code, status, name))
		roots = append(roots, name)
	}
	slices.Sort(roots)
	return roots, nil
}
