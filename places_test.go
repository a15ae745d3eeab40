// SPDX-License-Identifier: Apache-2.0

package muster_test

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

const componentPackage = module + "/internal/plane/component"

// namesLoopback are the functions of a plane that may name the loopback address, with the reason.
var namesLoopback = map[string]string{
	"cmd/muster/service/registry.go NewRegistryCommand":           "the registry, whose port alone services of the release before tell",
	"internal/plane/component/authenticator.go authenticatorFile": "the name by which programs of this host ask the account",
	"internal/plane/component/credentials.go localhost":           "the name that certificates are good for, too",
	"internal/plane/issuer/hostname.go hostName":                  "a name that no issuer may have",
	"internal/plane/webhookproxy/proxy.go newProxy":               "an example in an error",
}

// makesPlaces is the file that makes the places of all components.
const makesPlaces = "internal/plane/portplan/places.go"

// loopbackName matches a text that names the loopback address.
var loopbackName = regexp.MustCompile(`127\.0\.0\.1|\blocalhost\b`)

// A plane on another host listens elsewhere and is reached elsewhere: all addresses of components come from
// component.Places.
func TestAddressesOfComponentsComeFromPlaces(t *testing.T) {
	used, read := map[string]bool{}, 0
	for _, s := range sources(t) {
		_, consumer := s.imports[componentPackage]
		forTests := s.test || strings.HasPrefix(s.path, "test/") || strings.HasSuffix(s.dir, "test")
		if forTests || s.path == makesPlaces || !consumer && !strings.HasPrefix(s.path, "internal/plane/") && !strings.HasPrefix(s.path, "internal/cluster/") {
			continue
		}
		read++
		for _, declaration := range s.file.Decls {
			where := s.path
			if function, ok := declaration.(*ast.FuncDecl); ok {
				where += " " + function.Name.Name
			}
			ast.Inspect(declaration, func(node ast.Node) bool {
				literal, isLiteral := node.(*ast.BasicLit)
				name, isName := node.(*ast.Ident)
				if isLiteral && loopbackName.MatchString(literal.Value) || isName && name.Name == "OnLoopback" {
					if _, ok := namesLoopback[where]; !ok {
						t.Errorf("%s names the loopback address: take the address from component.Places, which %s makes", where, makesPlaces)
					}
					used[where] = true
				}
				return true
			})
		}
	}
	if read < 100 {
		t.Fatalf("read %d files only: the test looks in the wrong place", read)
	}
	for where, reason := range namesLoopback {
		if !used[where] {
			t.Errorf("%s no longer names the loopback address: remove it from the exceptions (%s)", where, reason)
		}
	}
}
