// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// concernedPackages are the packages, by module, that changed files belong to, and those that import them in whatever
// module. A change of tests concerns no importer; a change of a go.mod or go.sum concerns every package of its module.
func concernedPackages(root string, all map[module][]goPackage, changed []string) map[module][]string {
	touched := map[string]bool{} // directories; true if importers see the change
	resolved := map[string]bool{}
	for _, file := range changed {
		dir, base := path.Dir(file), path.Base(file)
		switch {
		case base == "go.mod" || base == "go.sum":
			resolved[dir] = true
		case path.Ext(base) == ".go" || path.Ext(base) == ".s":
			touched[dir] = touched[dir] || !strings.HasSuffix(base, "_test.go")
		}
	}
	seen := map[string]bool{} // import paths whose change importers see
	concerned := map[module][]string{}
	for m, packages := range all {
		for _, p := range packages {
			dir, err := filepath.Rel(root, p.Dir)
			if err != nil {
				continue // go prints absolute paths
			}
			visible, ok := touched[filepath.ToSlash(dir)]
			if ok || resolved[m.dir] {
				concerned[m] = append(concerned[m], p.ImportPath)
			}
			if visible {
				seen[p.ImportPath] = true
			}
		}
	}
	for m, packages := range all {
		for _, p := range packages {
			imports := slices.Concat(p.Imports, p.TestImports, p.XTestImports)
			if slices.ContainsFunc(imports, func(imported string) bool { return seen[imported] }) {
				concerned[m] = append(concerned[m], p.ImportPath)
			}
		}
		slices.Sort(concerned[m])
		concerned[m] = slices.Compact(concerned[m])
	}
	return concerned
}
