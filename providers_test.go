// SPDX-License-Identifier: Apache-2.0

package muster_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const apiPackage = module + "/api/v1alpha1"

// namesAProvider are the functions that may name a provider outside the API, its own folder and tests, with the reason.
var namesAProvider = map[string]string{
	"internal/machine/providerlist/providerlist.go OfHost": "the list of providers, a line each",
}

// providerFolder holds a folder for each provider, which knows its own name.
const providerFolder = "internal/machine/machine/"

// Machines are asked what they can do, never what they are: a provider that is added is in its folder, the table of the
// API and one line of wiring.
func TestProvidersAreNotNamed(t *testing.T) {
	all := sources(t)
	constants, values := providerConstants(all)
	if len(constants) < 2 {
		t.Fatalf("the API has the providers %v: the test looks in the wrong place", constants)
	}
	used := map[string]bool{}
	for _, s := range all {
		forTests := s.test || strings.HasPrefix(s.path, "test/") || strings.HasSuffix(s.dir, "test")
		if forTests || strings.HasPrefix(s.path, "api/") ||
			slices.ContainsFunc(values, func(name string) bool { return s.dir == providerFolder+name }) {
			continue
		}
		for _, found := range namedProviders(s, constants, values) {
			if _, ok := namesAProvider[found.where]; ok {
				used[found.where] = true
				continue
			}
			t.Errorf("%s names a provider (%s): ask what its machines can do, by Can of the provider or machine.Ask", found.where, found.what)
		}
	}
	for where, reason := range namesAProvider {
		if !used[where] {
			t.Errorf("%s no longer names a provider: remove it from the exceptions (%s)", where, reason)
		}
	}
}

// providerConstants returns the constants of the API's type Provider, and their values. The default provider is a
// choice that code may repeat.
func providerConstants(all []source) (constants, values []string) {
	for _, s := range all {
		if s.dir != "api/v1alpha1" || s.test {
			continue
		}
		for _, declaration := range s.file.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok || general.Tok != token.CONST {
				continue
			}
			for _, spec := range general.Specs {
				constant, ok := spec.(*ast.ValueSpec)
				if !ok || len(constant.Values) != 1 {
					continue
				}
				kind, isNamed := constant.Type.(*ast.Ident)
				literal, isLiteral := constant.Values[0].(*ast.BasicLit)
				if !isNamed || kind.Name != "Provider" || !isLiteral {
					continue
				}
				if value, err := strconv.Unquote(literal.Value); err == nil {
					constants, values = append(constants, constant.Names[0].Name), append(values, value)
				}
			}
		}
	}
	return constants, values
}

// namedProvider is a place at which code names a provider.
type namedProvider struct{ where, what string }

// namedProviders finds the constants of providers in a file, and comparisons of a provider with a string, the default
// provider too.
func namedProviders(s source, constants, values []string) []namedProvider {
	api, imported := s.imports[apiPackage]
	var found []namedProvider
	for _, declaration := range s.file.Decls {
		where := s.path
		if function, ok := declaration.(*ast.FuncDecl); ok {
			where += " " + function.Name.Name
		}
		isName := func(e ast.Expr) bool {
			if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				value, err := strconv.Unquote(literal.Value)
				return err == nil && slices.Contains(values, value)
			}
			return imported && isDefaultProvider(e, api)
		}
		ast.Inspect(declaration, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && imported && x.Name == api && slices.Contains(constants, n.Sel.Name) {
					found = append(found, namedProvider{where, n.Sel.Name})
				}
			case *ast.BinaryExpr:
				if (n.Op == token.EQL || n.Op == token.NEQ) && (isProvider(n.X) && isName(n.Y) || isProvider(n.Y) && isName(n.X)) {
					found = append(found, namedProvider{where, "a comparison"})
				}
			case *ast.SwitchStmt:
				if n.Tag != nil && isProvider(n.Tag) {
					found = append(found, namedProvider{where, "a switch"})
				}
			case *ast.IndexExpr:
				if isName(n.Index) && isProvider(n.X) {
					found = append(found, namedProvider{where, "a look-up"})
				}
			}
			return true
		})
	}
	return found
}

// isDefaultProvider reports whether an expression is the default provider of the API, perhaps as a string.
func isDefaultProvider(e ast.Expr, api string) bool {
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 {
		e = call.Args[0]
	}
	selector, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := selector.X.(*ast.Ident)
	return ok && x.Name == api && selector.Sel.Name == "DefaultProvider"
}

// isProvider reports whether an expression is called a provider or a map of providers, perhaps converted to another
// type.
func isProvider(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		return len(e.Args) == 1 && isProvider(e.Args[0])
	case *ast.SelectorExpr:
		return isProvider(e.Sel)
	case *ast.Ident:
		name := strings.ToLower(e.Name)
		return strings.HasSuffix(name, "provider") || strings.HasSuffix(name, "providers")
	}
	return false
}

func TestNamedProviders(t *testing.T) {
	for body, want := range map[string]string{
		`_ = g.Provider == v1alpha1.ProviderLocal`:                "ProviderLocal",
		`_ = providers[v1alpha1.ProviderSimulated]`:               "ProviderSimulated",
		`_ = "simulated" != string(m.Spec.Provider)`:              "a comparison",
		`_ = c.provider == "local"`:                               "a comparison",
		`_ = c.provider == v1alpha1.DefaultProvider`:              "a comparison",
		`_ = c.provider == string(v1alpha1.DefaultProvider)`:      "a comparison",
		`_ = providers["local"]`:                                  "a look-up",
		`_ = r.Providers[v1alpha1.DefaultProvider]`:               "a look-up",
		`switch m.Spec.Provider { case "other": }`:                "a switch",
		`_ = m.Spec.Provider.Can(v1alpha1.RunPods)`:               "",
		`_ = Spec{Provider: v1alpha1.DefaultProvider}`:            "",
		`_ = zone == "local"`:                                     "",
		`_ = a.Spec.Provider == b.Spec.Provider`:                  "",
		`_ = r.Providers[m.Spec.Provider]`:                        "",
		`_ = c.Provider == "" || c.Provider == "oidc.example.eu"`: "",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\nfunc f() { "+body+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		s := source{path: "a.go", file: file, imports: map[string]string{apiPackage: "v1alpha1"}}
		got := ""
		for _, found := range namedProviders(s, []string{"ProviderLocal", "ProviderSimulated"}, []string{"local", "simulated"}) {
			got = found.what
		}
		if got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}
