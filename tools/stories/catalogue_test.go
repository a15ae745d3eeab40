// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const source = `package stories

// TestBeside says what it is about.
//
//story:about network/vpc ./egress
//story:needs addons
func TestBeside(t *testing.T) {
	t.Parallel()
}

//story:about node
func TestAlone(t *testing.T) {
	t.Run("step", func(t *testing.T) { t.Parallel() })
}

func (w *world) TestNot() {}
func TestMain(m *testing.M) {}
func helper() {}
`

func TestReadStories(t *testing.T) {
	t.Parallel()
	stories, err := readStories("test/stories/x_test.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	want := []story{
		{name: "TestBeside", file: "test/stories/x_test.go", about: []string{"internal/network/vpc", "egress"}, needs: "addons"},
		{name: "TestAlone", file: "test/stories/x_test.go", about: []string{"internal/node"}, alone: true},
	}
	if diff := cmp.Diff(want, stories, cmp.AllowUnexported(story{})); diff != "" {
		t.Error(diff)
	}
}

func TestSoakStories(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{"//go:build soak\n\n": true, "//go:build !soak\n\n": false, "//go:build linux\n\n": false, "": false, "//go:build soak && linux\n\n": true} {
		stories, err := readStories("x_test.go", []byte(line+source))
		if err != nil || stories[0].soak != want {
			t.Errorf("%q: soak is %v (%v)", line, stories[0].soak, err)
		}
	}
}

func TestStoriesThatSayNothing(t *testing.T) {
	t.Parallel()
	_, err := readStories("x_test.go", []byte("package stories\n\nfunc TestX(t *testing.T) {}\nfunc TestY(t *testing.T) {}\n"))
	if err == nil || !strings.Contains(err.Error(), "TestX does not say") || !strings.Contains(err.Error(), "TestY does not say") {
		t.Errorf("error %v", err)
	}
}

func TestStoriesAreAboutWhatIsThere(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"test/stories", "internal/node", "egress"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "test/stories/x_test.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readCatalogue(root, "test/stories"); err == nil || err.Error() != "test/stories/x_test.go: TestBeside is about internal/network/vpc, which is not a directory" {
		t.Errorf("error %v", err)
	}
}

// The tracked lists are right at the commit that has them.
func TestTrackedLists(t *testing.T) {
	t.Chdir("../..")
	commit, err := commitDate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := readLists(commit)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.stories) < 30 || len(l.core) == 0 {
		t.Errorf("there are %d stories, %d of them core", len(l.stories), len(l.core))
	}
	var seconds time.Duration
	for _, name := range l.core {
		seconds += l.times.of(name)
	}
	t.Logf("the core takes %s of stories one after another", seconds)
}
