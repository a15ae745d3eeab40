// SPDX-License-Identifier: Apache-2.0

package muster_test

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/release"
)

// Only the list of releases says which Kubernetes there is: every part reads it from the release that it is given, so
// that another minor is an entry.
func TestVersionsOfKubernetesAreInOneList(t *testing.T) {
	const list = "internal/platform/release"
	versions, inList := map[string]bool{}, 0
	for _, r := range release.All() {
		versions[r.Version], versions[r.Patch()], versions[r.Minor()], versions["v"+r.Minor()] = true, true, true, true
	}
	for _, s := range sources(t) {
		if s.test || strings.HasSuffix(s.dir, "test") { // tests and fakes write versions out
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			switch text, err := strconv.Unquote(literal.Value); {
			case err != nil || !versions[text]:
			case s.dir == list && strings.Count(text, ".") == 2:
				inList++
			case s.dir == list: // the folder of its programs
			default:
				t.Errorf("%s says %s: read it from the cluster's or the machine's release (%s)", s.path, literal.Value, list)
			}
			return true
		})
	}
	if inList != len(release.All()) {
		t.Errorf("%s says %d versions, and has %d releases", list, inList, len(release.All()))
	}
}
