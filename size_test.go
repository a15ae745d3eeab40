// SPDX-License-Identifier: Apache-2.0

package muster_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// sizes are the figures that no function or type may exceed, by what is counted. sizesFile lists the exceptions.
var sizes = map[string]int{
	"lines":      60, // of a function: between its first line and its closing brace
	"cyclomatic": 20, // complexity of a function, as gocyclo counts it
	"methods":    40, // of a type, in all files of its package
}

// sizesFile has a line for each function or type that is larger: what is counted, its name, and its figure, which may
// only fall.
const sizesFile = "sizes.txt"

// size names a figure: what is counted, and the function or type as directory.Name or directory.Type.Method.
type size struct{ what, name string }

func (s size) String() string { return s.what + " " + s.name }

// Sources alone are measured: a test may be a long table, and generated code is as long as its input.
func TestNothingGrowsTooLarge(t *testing.T) {
	raw, err := os.ReadFile(sizesFile)
	if err != nil {
		t.Fatal(err)
	}
	listed, problems := readSizes(string(raw))
	measured := map[size]int{}
	for _, s := range sources(t) {
		if !s.test && !ast.IsGenerated(s.file) {
			measure(s, measured)
		}
	}
	if len(measured) < 5000 {
		t.Fatalf("measured %d figures only: the test looks in the wrong place", len(measured))
	}
	for _, problem := range append(problems, sizeProblems(measured, listed)...) {
		t.Error(problem)
	}
}

// readSizes reads the exceptions. Each has the figure that was measured last.
func readSizes(text string) (map[size]int, []string) {
	listed, problems, before := map[size]int{}, []string(nil), ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var of size
		var figure int
		if n, err := fmt.Sscanf(line, "%s %s %d", &of.what, &of.name, &figure); n != 3 || err != nil || sizes[of.what] == 0 {
			problems = append(problems, fmt.Sprintf("%s: %q is not a measure, a name and a figure", sizesFile, line))
		}
		if line <= before {
			problems = append(problems, fmt.Sprintf("%s: %q is not in order, or is there twice", sizesFile, line))
		}
		listed[of], before = figure, line
	}
	return listed, problems
}

// sizeProblems compares what was measured with the limits and their exceptions.
func sizeProblems(measured, listed map[size]int) []string {
	var problems []string
	for of, figure := range measured {
		limit := sizes[of.what]
		allowed, excepted := listed[of]
		switch {
		case !excepted && figure > limit:
			problems = append(problems, fmt.Sprintf("%s is %d, more than %d: divide it", of, figure, limit))
		case excepted && figure <= limit:
			problems = append(problems, fmt.Sprintf("%s is %d, no more than %d: remove it from %s", of, figure, limit, sizesFile))
		case excepted && figure > allowed:
			problems = append(problems, fmt.Sprintf("%s is %d, and was %d: an exception may only become smaller", of, figure, allowed))
		case excepted && figure < allowed:
			problems = append(problems, fmt.Sprintf("%s is %d, fewer than %d: lower it in %s", of, figure, allowed, sizesFile))
		}
	}
	for of := range listed {
		if _, there := measured[of]; !there {
			problems = append(problems, fmt.Sprintf("%s is not there any more: remove it from %s", of, sizesFile))
		}
	}
	slices.Sort(problems)
	return problems
}

// measure adds the figures of a file. A name that a package has more than once, such as init, has the largest figure of
// them.
func measure(s source, into map[size]int) {
	for _, declaration := range s.file.Decls {
		fn, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := s.dir + "." + fn.Name.Name
		if fn.Recv != nil {
			receiver := receiverOf(fn.Recv.List[0].Type)
			name = s.dir + "." + receiver + "." + fn.Name.Name
			into[size{"methods", s.dir + "." + receiver}]++
		}
		lines := s.set.Position(fn.End()).Line - s.set.Position(fn.Pos()).Line - 1
		into[size{"lines", name}] = max(into[size{"lines", name}], lines)
		into[size{"cyclomatic", name}] = max(into[size{"cyclomatic", name}], cyclomatic(fn))
	}
}

// receiverOf is the name of the type that a method has.
func receiverOf(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return receiverOf(e.X)
	case *ast.IndexExpr:
		return receiverOf(e.X)
	case *ast.IndexListExpr:
		return receiverOf(e.X)
	case *ast.ParenExpr:
		return receiverOf(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// cyclomatic is the complexity of a function with the functions in it, as gocyclo has it (v0.6.0, complexity.go):
// default cases count nothing.
func cyclomatic(fn ast.Node) int {
	complexity := 1
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			complexity++
		case *ast.CaseClause:
			complexity += min(1, len(n.List))
		case *ast.CommClause:
			if n.Comm != nil {
				complexity++
			}
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				complexity++
			}
		}
		return true
	})
	return complexity
}

func TestSizeProblems(t *testing.T) {
	t.Parallel()
	long := func(name string) size { return size{"lines", name} }
	got := sizeProblems(
		map[size]int{long("a.fits"): 60, long("a.new"): 61, long("a.kept"): 70, long("a.grew"): 71, long("a.fell"): 69, long("a.fits_now"): 60, {"methods", "a.T"}: 41, {"cyclomatic", "a.f"}: 20},
		map[size]int{long("a.kept"): 70, long("a.grew"): 70, long("a.fell"): 70, long("a.fits_now"): 70, long("a.gone"): 70},
	)
	want := []string{
		"lines a.fell is 69, fewer than 70: lower it in " + sizesFile,
		"lines a.fits_now is 60, no more than 60: remove it from " + sizesFile,
		"lines a.gone is not there any more: remove it from " + sizesFile,
		"lines a.grew is 71, and was 70: an exception may only become smaller",
		"lines a.new is 61, more than 60: divide it",
		"methods a.T is 41, more than 40: divide it",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, text := range []string{"lines a.f", "pages a.f 70", "lines b.f 70\nlines a.f 70", "lines a.f 70\nlines a.f 70"} {
		if _, problems := readSizes(text); len(problems) != 1 {
			t.Errorf("%q: %q", text, problems)
		}
	}
}
