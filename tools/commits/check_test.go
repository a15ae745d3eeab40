// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
)

const nested = "module example.test/m/nested\n\ngo 1.26\n\nrequire example.test/m v0.0.0\n\nreplace example.test/m => ../\n"

func TestCommits(t *testing.T) {
	for name, c := range map[string]struct {
		before files // on main
		change files
		want   []string // parts of the output; nothing if the commit holds
	}{
		"a package":       {nil, files{"c/c.go": "package c\n"}, nil},
		"nothing of Go's": {nil, files{"README.md": "Text.\n"}, nil},
		"an import that is not there": {
			nil,
			files{"c/c.go": "package c\n\nimport _ \"example.test/m/later\"\n"},
			[]string{"go list -deps -test ./...:\n", "example.test/m/later"},
		},
		"an import of a test that is not there": {
			nil,
			files{"b/b_test.go": "package b_test\n\nimport _ \"example.test/m/later\"\n"},
			[]string{"go list -deps -test ./...:\n", "example.test/m/later"},
		},
		"an import of a story that is not there": {
			nil,
			files{"b/b_soak_test.go": "//go:build soak\n\npackage b\n\nimport _ \"example.test/m/later\"\n"},
			[]string{"go list -deps -test ./...:\n", "example.test/m/later"},
		},
		"an import that no build has": {
			nil,
			files{"b/ignored.go": "//go:build ignore\n\npackage main\n\nimport _ \"example.test/m/later\"\n"},
			nil,
		},
		"an import in testdata": {nil, files{"b/testdata/src/x.go": "package x\n\nimport _ \"example.test/m/later\"\n"}, nil},
		"a module that nobody requires": {
			nil,
			files{"c/c.go": "package c\n\nimport _ \"example.test/elsewhere\"\n"},
			[]string{"example.test/elsewhere"},
		},
		"what does not vet": {
			nil,
			files{"a/say.go": "package a\n\nimport \"fmt\"\n\nfunc Say() { fmt.Printf(\"%d\\n\", \"text\") }\n"},
			[]string{"go vet:\n", "a/say.go:5", "wrong type"},
		},
		"a test that does not vet": {
			nil,
			files{"a/say_test.go": "package a\n\nimport \"testing\"\n\nfunc TestSay(t *testing.T) { t.Errorf(\"%d\", \"text\") }\n"},
			[]string{"go vet:\n", "a/say_test.go:5"},
		},
		"an importer that does not compile": {
			nil,
			files{"a/a.go": "package a\n\nfunc Renamed() string { return \"a\" }\n"},
			[]string{"go vet:\n", "b/b.go:5", "undefined: a.Name"},
		},
		"a package removed, and an importer left": {nil, files{"a/a.go": ""}, []string{"go list -deps -test ./...:\n", "example.test/m/a"}},
		"a package removed with its importer":     {nil, files{"a/a.go": "", "b/b.go": ""}, nil},
		"all that is Go's removed":                {nil, files{"a/a.go": "", "b/b.go": "", "go.mod": ""}, nil},
		"a nested module that imports what went": {
			files{"nested/go.mod": nested, "nested/n.go": "package nested\n\nimport _ \"example.test/m/b\"\n"},
			files{"b/b.go": ""},
			[]string{"go list -deps -test ./... in nested:\n", "example.test/m/b"},
		},
		"a nested module that does not compile": {
			files{"nested/go.mod": nested, "nested/n.go": "package nested\n\nimport \"example.test/m/a\"\n\nvar Name = a.Name()\n"},
			files{"a/a.go": "package a\n", "b/b.go": ""},
			[]string{"go vet in nested:\n", "n.go:5", "undefined: a.Name"},
		},
		"a nested module of its own": {
			nil,
			files{"own/go.mod": "module example.test/own\n\ngo 1.26\n", "own/o.go": "package own\n\nimport _ \"example.test/own/later\"\n"},
			[]string{"go list -deps -test ./... in own:\n", "example.test/own/later"},
		},
		"a module without sources that wants a newer Go": {nil, files{"tool/go.mod": "module example.test/tool\n\ngo 1.99\n"}, nil},
		"a go.mod that changes what others get": {
			files{"dep/go.mod": "module example.test/dep\n\ngo 1.26\n", "dep/d.go": "package dep\n\nconst D = 1\n", "other/go.mod": "module example.test/dep\n\ngo 1.26\n", "other/d.go": "package dep\n", "go.mod": "module example.test/m\n\ngo 1.26\n\nrequire example.test/dep v0.0.0\n\nreplace example.test/dep => ./dep\n", "c/c.go": "package c\n\nimport \"example.test/dep\"\n\nconst C = dep.D\n"},
			files{"go.mod": "module example.test/m\n\ngo 1.26\n\nrequire example.test/dep v0.0.0\n\nreplace example.test/dep => ./other\n"},
			[]string{"go vet:\n", "c/c.go:5", "undefined: dep.D"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScratch(t)
			if c.before != nil {
				s.commit("all: prepare", c.before)
			}
			s.git("switch", "--quiet", "--create", "topic")
			id := s.commit("area: change it", c.change)
			out, holds := s.check()
			if holds != (c.want == nil) {
				t.Errorf("holds: %v", holds)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("does not print %q", want)
				}
			}
			if failure := fmt.Sprintf("FAIL  %s area: change it\n", id); strings.Contains(out, failure) == holds {
				t.Errorf("prints the commit: %v", !holds)
			}
			if !strings.Contains(out, "1 commits checked") || t.Failed() {
				t.Errorf("printed:\n%s", out)
			}
		})
	}
}

// A tree that is cut into commits by folders is whole in the end, and that is not enough.
func TestEachCommitCounts(t *testing.T) {
	s := newScratch(t)
	s.git("switch", "--quiet", "--create", "topic")
	first := s.commit("d: add a user of c", files{"d/d.go": "package d\n\nimport _ \"example.test/m/c\"\n"})
	second := s.commit("c: add a package", files{"c/c.go": "package c\n"})
	out, holds := s.check()
	if holds || !strings.Contains(out, "FAIL  "+first) || strings.Contains(out, "FAIL  "+second) || !strings.Contains(out, "2 commits checked, 1 failed; vetted 1 in") {
		t.Errorf("the first of two does not build; printed:\n%s", out)
	}
}

// Each side of a merge may hold, and the merge not.
func TestMerge(t *testing.T) {
	s := newScratch(t)
	s.git("switch", "--quiet", "--create", "side")
	s.commit("a: rename Name", files{"a/a.go": "package a\n\nfunc Renamed() string { return \"a\" }\n", "b/b.go": "package b\n\nimport \"example.test/m/a\"\n\nvar Name = a.Renamed()\n"})
	s.git("switch", "--quiet", "--create", "topic", "main")
	s.commit("c: use a", files{"c/c.go": "package c\n\nimport \"example.test/m/a\"\n\nvar Name = a.Name()\n"})
	s.git("merge", "--quiet", "--no-ff", "--message", "Merge branch 'side'", "side")
	merge := s.head()
	out, holds := s.check()
	if holds || !strings.Contains(out, "FAIL  "+merge+" Merge branch 'side'\n  go vet:\n") || !strings.Contains(out, "undefined: a.Name") || !strings.Contains(out, "3 commits checked, 1 failed") {
		t.Errorf("the merge alone does not build; printed:\n%s", out)
	}
}

func TestTimeForVetting(t *testing.T) {
	s := newScratch(t)
	s.git("switch", "--quiet", "--create", "topic")
	older := s.commit("a: say wrongly", files{"a/say.go": "package a\n\nimport \"fmt\"\n\nfunc Say() { fmt.Printf(\"%d\\n\", \"text\") }\n"})
	newer := s.commit("c: add a package", files{"c/c.go": "package c\n"})
	out, holds := s.check("-within", "1ns")
	if want := "2 commits checked, 0 failed; vetted 0 in 0s\nvet did not reach 2: " + newer + ", " + older + "\n"; !holds || !strings.HasSuffix(out, want) {
		t.Errorf("printed:\n%s\nwant at its end:\n%s", out, want)
	}
}

func TestFirstLinesOfGo(t *testing.T) {
	if got := indent(strings.Repeat("line\n", shown+2)); strings.Count(got, "    line\n") != shown || !strings.HasSuffix(got, "    ... and 2 lines more\n") {
		t.Errorf("got:\n%s", got)
	}
}
