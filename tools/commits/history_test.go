// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestWhichCommits(t *testing.T) {
	long := func(s scratch) {
		for n := range newest + 2 {
			s.commit(fmt.Sprintf("all: change %d", n), nil)
		}
	}
	for name, c := range map[string]struct {
		prepare func(s scratch)
		base    string
		commits int
		want    string // of the description
	}{
		"since origin/main": {
			func(s scratch) {
				s.git("update-ref", "refs/remotes/origin/main", "HEAD")
				s.commit("all: change one", nil)
				s.git("branch", "topic")
				s.git("switch", "--quiet", "topic")
				s.commit("all: change two", nil)
			},
			"", 2, "the merge base with origin/main",
		},
		"since main": {
			func(s scratch) {
				s.git("switch", "--quiet", "--create", "topic")
				s.commit("all: change one", nil)
				s.git("switch", "--quiet", "main")
				s.commit("all: change main", nil)
				s.git("switch", "--quiet", "topic")
			},
			"", 1, "the merge base with main",
		},
		"on main": {long, "", newest, "HEAD has no commit that main does not have"},
		"at origin/main": {
			func(s scratch) { long(s); s.git("update-ref", "refs/remotes/origin/main", "HEAD") },
			"", newest, "HEAD has no commit that origin/main does not have",
		},
		"without main": {
			func(s scratch) { long(s); s.git("branch", "--move", "trunk") },
			"", newest, "neither origin/main nor main has a merge base with HEAD",
		},
		"a short history":     {func(s scratch) { s.commit("all: change", nil) }, "", 2, "the newest 10"},
		"since what is asked": {long, "HEAD~3", 3, "the merge base with HEAD~3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScratch(t)
			c.prepare(s)
			commits, which, err := repository{s.dir}.commits(t.Context(), c.base)
			if err != nil || len(commits) != c.commits || !strings.Contains(which, c.want) {
				t.Fatalf("%d commits, %q, %v; want %d, %q", len(commits), which, err, c.commits, c.want)
			}
			if head := s.git("rev-parse", "HEAD"); commits[0].id != head {
				t.Errorf("the first is %s, want the newest, %s", commits[0].id, head)
			}
		})
	}
}

func TestABaseThatIsAskedForMustExist(t *testing.T) {
	s := newScratch(t)
	if _, _, err := (repository{s.dir}).commits(t.Context(), "no-such-branch"); err == nil || !strings.Contains(err.Error(), "-base no-such-branch") {
		t.Errorf("got %v", err)
	}
}

func TestSubjects(t *testing.T) {
	for subject, holds := range map[string]bool{
		"eks: refuse unknown versions":               true,
		"test/awssdk, eks: call UpdateClusterConfig": true,
		"docs: say " + strings.Repeat("ä", 55):       true,
		"docs: say " + strings.Repeat("x", 56):       false,
		"Refuse unknown versions":                    false,
		"Stories: have two at a time, but for: more": true,
		"what is asked for: more":                    false,
		"eks:refuse versions":                        false,
		"eks: refuse":                                false,
		"eks: ":                                      false,

		// Subjects of this repository.
		"addons: make a wing of what belongs to it":                     true,
		"ami: rename cluster/image, whose name a wing will have":        true,
		"bench: measure speed in three turns":                           true,
		"local: refuse a machine's group every device that it has not":  true,
		"stories: know the programs that every cluster runs":            true,
		"up: wait while the management plane loads its rules":           true,
		"docs: tell apart what audit lines and the webhook cost a join": true,
		"loopservice: have a test read under the lock of what it reads": true,
		"changelog: say what status and up do now, and what disks cost": true,
		"devicemount: take turns with who waits on one processor":       true,
		"iampolicy: one name for the principal of pods":                 false,
		"docs: which pods met the aim of their start":                   false,
		"conformance: a reason takes a line, not a page":                false,
		"docs: pods do get credentials, and machines are in all zones":  false,
		"filestore: Sweep finds what is left in any directory":          false,
		"serve: down --delete says what stays mounted":                  false,
	} {
		if problem := subjectProblem(commit{subject: subject}); (problem == "") != holds {
			t.Errorf("%q: %q, want that it holds: %v", subject, problem, holds)
		}
	}
	for word, want := range map[string]string{
		"refuses": `write "refuse"`, "refused": `write "refuse"`, "Refuse": "add the verb to the list", "passes": `write "pass"`,
		"adding": `write "add"`, "making": `write "make"`, "snapshots": "a verb in the imperative",
	} {
		if problem := subjectProblem(commit{subject: "eks: " + word + " versions"}); !strings.Contains(problem, `begins with "`+word+`" after the area`) || !strings.Contains(problem, want) {
			t.Errorf("%s: %q, want %q in it", word, problem, want)
		}
	}
	if !slices.IsSorted(verbs) || len(slices.Compact(slices.Clone(verbs))) != len(verbs) {
		t.Error("verbs.txt is not sorted, or has a verb twice")
	}
	if problem := subjectProblem(commit{subject: "Merge branch 'side'", parents: []string{"a", "b"}}); problem != "" {
		t.Errorf("a merge: %q", problem)
	}
	s := newScratch(t)
	s.git("switch", "--quiet", "--create", "topic")
	id := s.commit("Refuse unknown versions", nil)
	if out, holds := s.check(); holds || !strings.Contains(out, "FAIL  "+id+" Refuse unknown versions\n  subject:\n    must have the form") {
		t.Errorf("printed:\n%s", out)
	}
}
