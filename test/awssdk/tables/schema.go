// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// schemaReader reads clients that carry their API's schema in a package of variables: smithy.NewSchema, AddMember.
type schemaReader struct {
	source *source
	table  *table
	names  map[string]string     // variable → shape or kind
	traits map[string][]ast.Expr // variable → what the schema was made with
	http   map[string]string     // operation → method and path, and the status of success unless that is 200
	fields map[string]*shape     // Go name of a structure → shape, for the validators
}

var schemaKinds = map[string]string{
	"Blob": "blob", "Boolean": "boolean", "String": "string", "Timestamp": "timestamp", "Integer": "integer", "Long": "long", "Float": "float",
	"Double": "double", "Document": "document", "Enum": "string", "IntEnum": "integer", "List": "list", "Map": "map", "Structure": "structure",
	"Union": "union", "Operation": "operation", "Service": "service",
}

// schemaTable reads the table of a service. Without operations it has all.
func schemaTable(s *source, of service) (string, error) {
	r := schemaReader{source: s, table: &table{shapes: map[string]*shape{}}, names: map[string]string{}, traits: map[string][]ast.Expr{}, http: map[string]string{}, fields: map[string]*shape{}}
	file := s.files["schemas/schemas.go"]
	if file == nil {
		return "", fmt.Errorf("%s has no schemas", s.module)
	}
	version, target, err := r.declarations(file)
	if err != nil {
		return "", err
	}
	if err := r.members(file); err != nil {
		return "", err
	}
	r.table.service = fmt.Sprintf("%s %s %s", of.name, of.protocol, version)
	if of.protocol != "restjson" {
		r.table.service += " target=" + target
	}
	r.table.service += of.words()
	roots := r.errors()
	more, err := r.operations(of)
	if err != nil {
		return "", err
	}
	r.marks()
	return r.table.text(s.module, append(roots, more...))
}

// declarations reads `var X = smithy.NewSchema(smithy.ShapeID{…}, smithy.ShapeTypeStructure, 3, traits…)`.
func (r *schemaReader) declarations(file *ast.File) (version, target string, err error) {
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok || len(value.Values) != 1 {
				continue
			}
			variable := value.Names[0].Name
			call, ok := value.Values[0].(*ast.CallExpr)
			if !ok {
				if prelude, ok := strings.CutPrefix(dotted(value.Values[0]), "smithyprelude."); ok {
					r.names[variable] = preludeKind(prelude)
				}
				continue
			}
			switch dotted(call.Fun) {
			case "smithy.NewServiceSchema":
				version, target = literal(call.Args[1]), r.names[dotted(call.Args[0])]
			case "smithy.NewSchema":
				id := literal(fields(call.Args[0])["Name"])
				kind, ok := schemaKinds[strings.TrimPrefix(dotted(call.Args[1]), "smithy.ShapeType")]
				if !ok {
					return "", "", fmt.Errorf("%s: type %s is unknown", id, dotted(call.Args[1]))
				}
				r.traits[variable] = call.Args[3:]
				r.declare(variable, id, kind, call.Args[3:])
			}
		}
	}
	return version, target, nil
}

func (r *schemaReader) declare(variable, id, kind string, traits []ast.Expr) {
	r.names[variable] = id
	switch kind {
	case "structure", "union", "list", "map":
		r.table.shapes[id] = &shape{kind: kind}
		r.fields[id] = r.table.shapes[id]
	case "operation":
		if http, ok := trait(traits, "HTTP"); ok {
			r.http[id] = literal(http["Method"]) + " " + literal(http["URI"])
			if code, ok := http["Code"].(*ast.BasicLit); ok && code.Value != "200" {
				r.http[id] += " " + code.Value
			}
		}
	case "service":
	default:
		r.names[variable] = kind
	}
}

// trait finds a trait among those of a schema.
func trait(traits []ast.Expr, name string) (map[string]ast.Expr, bool) {
	for _, e := range traits {
		if unary, ok := e.(*ast.UnaryExpr); ok {
			if composite, ok := unary.X.(*ast.CompositeLit); ok && dotted(composite.Type) == "smithytraits."+name {
				return fields(e), true
			}
		}
	}
	return nil, false
}

func preludeKind(name string) string {
	return strings.ToLower(strings.TrimPrefix(name, "Primitive"))
}

// members reads `X_name = X.AddMember("name", Target, traits…)`.
func (r *schemaReader) members(file *ast.File) error {
	var problem error
	calls(file, func(name string, call *ast.CallExpr) {
		variable, ok := strings.CutSuffix(name, ".AddMember")
		if !ok || problem != nil {
			return
		}
		s := r.table.shapes[r.names[variable]]
		if scalars[r.names[variable]] {
			return // a value of an enumeration
		}
		memberName, target := literal(call.Args[0]), r.target(call.Args[1])
		if s == nil || target == "" {
			problem = fmt.Errorf("member %s of %s is not understood", memberName, variable)
			return
		}
		switch s.kind {
		case "list":
			s.item = target
		case "map":
			if memberName == "value" {
				s.item = target
			}
		default:
			m := &member{name: memberName, shape: target}
			problem = m.traits(call.Args[2:])
			s.members = append(s.members, m)
		}
	})
	return problem
}

func (r *schemaReader) target(e ast.Expr) string {
	name := dotted(e)
	if prelude, ok := strings.CutPrefix(name, "smithyprelude."); ok {
		return preludeKind(prelude)
	}
	return r.names[name]
}

// traits turns what matters on the wire into words, and refuses what no codec here knows.
func (m *member) traits(traits []ast.Expr) error {
	for _, e := range traits {
		unary, ok := e.(*ast.UnaryExpr)
		if !ok {
			return fmt.Errorf("member %s: a trait is not understood", m.name)
		}
		values := fields(e)
		switch name := strings.TrimPrefix(dotted(unary.X.(*ast.CompositeLit).Type), "smithytraits."); name {
		case "HTTPLabel":
			m.add("label")
		case "HTTPQuery":
			m.add("query=" + literal(values["Name"]))
		case "HTTPHeader":
			m.add("header=" + literal(values["Name"]))
		case "HTTPPayload":
			m.add("payload")
		case "JSONName":
			m.add("name=" + literal(values["Name"]))
		case "TimestampFormat":
			m.add("time=" + literal(values["Format"]))
		case "XMLName", "XMLFlattened", "Sensitive", "ContextParam": // XML is not what this service speaks; an endpoint is chosen before the wire
		default:
			return fmt.Errorf("member %s: trait %s is not known", m.name, name)
		}
	}
	return nil
}

// errors lists what carries the error trait.
func (r *schemaReader) errors() (roots []string) {
	for variable, traits := range r.traits {
		made, ok := trait(traits, "Error")
		if !ok {
			continue
		}
		status := "400"
		if literal(made["Type"]) == "server" {
			status = "500"
		}
		if http, ok := trait(traits, "HTTPError"); ok {
			status = http["Code"].(*ast.BasicLit).Value
		}
		name := r.names[variable]
		r.table.errors = append(r.table.errors, fmt.Sprintf("error %s %s %s", name, status, name))
		roots = append(roots, name)
	}
	return roots
}

// operations reads `smithy.NewOperationSchema(schemas.Op, schemas.In, schemas.Out)`.
func (r *schemaReader) operations(of service) (roots []string, err error) {
	wanted := of.operations
	found, tokens := map[string]bool{}, r.source.tokens()
	r.source.functions("api_op_", func(f *ast.FuncDecl) {
		calls(f, func(name string, call *ast.CallExpr) {
			if name != "smithy.NewOperationSchema" {
				return
			}
			op := r.names[strings.TrimPrefix(dotted(call.Args[0]), "schemas.")]
			if found[op] || wanted != nil && !slices.Contains(wanted, op) {
				return
			}
			found[op] = true
			in, out := r.part(call.Args[1]), r.part(call.Args[2])
			r.fields[op+"Input"] = r.table.shapes[in]
			line := fmt.Sprintf("operation %s %s %s", op, in, out)
			if http, ok := r.http[op]; ok && of.protocol == "restjson" { // a service of JSON may have HTTP bindings that no client uses
				line += " " + http
			}
			r.table.operations = append(r.table.operations, line)
			roots = append(roots, in, out)
			if field := tokens[op]; field != "" {
				r.mark(op+"Input", field, "token")
			}
		})
	})
	for _, op := range wanted {
		if !found[op] {
			return nil, fmt.Errorf("%s has no operation %s", r.source.module, op)
		}
	}
	return roots, nil
}

// part is the shape of an input or output, or "-" without one.
func (r *schemaReader) part(e ast.Expr) string {
	if name := r.names[strings.TrimPrefix(dotted(e), "schemas.")]; name != "" && r.table.shapes[name] != nil {
		return name
	}
	return "-"
}

// marks adds what only the client's validators know.
func (r *schemaReader) marks() {
	for structure, fields := range r.source.required() {
		for _, field := range fields {
			r.mark(structure, field, "required")
		}
	}
}

func (r *schemaReader) mark(structure, field, word string) {
	s := r.fields[structure]
	if s == nil {
		return
	}
	for _, m := range s.members {
		if strings.EqualFold(m.name, field) {
			m.add(word)
		}
	}
}
