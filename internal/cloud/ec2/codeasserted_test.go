// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// codeText is a code within a text: clients compare it as a whole.
var codeText = regexp.MustCompile(`(<[cC]ode>|<failureCode>)?([A-Za-z][A-Za-z0-9]*(?:\.[A-Za-z0-9]+)*)`)

// readAssertions returns where the tests of this package expect a code: by a literal, or a constant, that is neither a
// request nor a message of the test. A code that is a part of another code has to be in its element, because tests look
// for parts of an answer.
func readAssertions(t *testing.T, s *codeSources, codes []string) map[string]string {
	t.Helper()
	asserted := map[string]string{}
	expect := func(text, place string) {
		for _, m := range codeText.FindAllStringSubmatch(text, -1) {
			isPart := slices.ContainsFunc(codes, func(other string) bool { return other != m[2] && strings.Contains(other, m[2]) })
			if slices.Contains(codes, m[2]) && asserted[m[2]] == "" && (m[1] != "" || !isPart) {
				asserted[m[2]] = place
			}
		}
	}
	for _, name := range goFiles(t, ".", true) {
		if name == "codes_test.go" {
			continue
		}
		file, err := parser.ParseFile(s.files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		in := codeScope{file: file}
		ast.Inspect(file, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.CallExpr:
				called, ok := n.Fun.(*ast.SelectorExpr)
				switch {
				case !ok:
				case called.Sel.Name == "ask": // whose first argument is the request
					for _, argument := range n.Args[1:] {
						ast.Inspect(argument, func(node ast.Node) bool { return s.expected(node, expect) })
					}
					return false
				case slices.Contains([]string{"Error", "Errorf", "Fatal", "Fatalf", "Log", "Logf"}, called.Sel.Name), in.imported(called.X) == faults:
					return false
				}
			case *ast.CompositeLit:
				if makesFault(in, n) {
					return false
				}
			case *ast.KeyValueExpr: // whose key is a request, or a name
				ast.Inspect(n.Value, func(node ast.Node) bool { return s.expected(node, expect) })
				return false
			case *ast.ImportSpec:
				return false
			}
			return s.expected(node, expect)
		})
	}
	return asserted
}

// expected passes on the text of a literal or of a constant of this package. The code that the function refused is
// given stands in its element.
func (s *codeSources) expected(node ast.Node, expect func(text, place string)) bool {
	if call, ok := node.(*ast.CallExpr); ok && len(call.Args) > 0 {
		if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "refused" {
			expect("<Code>"+s.textIn(call.Args[0])+"</Code>", s.place(node))
		}
	}
	if expression, ok := node.(ast.Expr); ok {
		expect(s.textIn(expression), s.place(node))
	}
	return true
}

// textIn is the text of a literal or of a constant of this package, or "".
func (s *codeSources) textIn(expression ast.Expr) string {
	if name, ok := expression.(*ast.Ident); ok {
		expression = s.packages[ours].constants[name.Name]
	}
	literal, ok := expression.(*ast.BasicLit)
	if !ok || literal.Kind != gotoken.STRING {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}
