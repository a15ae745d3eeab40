// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// followed is a follower of a log in a new directory, driven by hand.
func followed(t *testing.T) *follower {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.log")
	r, err := newReader(Source{Name: "x", Path: path, Older: []string{path + ".1"}, Location: time.UTC}, Config{Tail: All, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return &follower{reader: r}
}

func (f *follower) expect(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for more := true; more; {
		var err error
		if more, err = f.poll(); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range f.found {
		got = append(got, string(l.text))
	}
	f.found = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("lines (-want +got):\n%s", diff)
	}
}

func add(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFollowGrowth(t *testing.T) {
	t.Parallel()
	f := followed(t)
	path := f.source.Path
	f.expect(t) // there is no file yet
	add(t, path, "one\ntw")
	f.expect(t, "one") // a line that is still being written waits
	add(t, path, "o\n")
	f.expect(t, "two")
	f.expect(t)
	long := strings.Repeat("z", 3*burst/2)
	add(t, path, long[:burst/4]+"\n"+long[:burst/3]+"\n"+long[:burst/2]+"\nlast\n")
	f.expect(t, long[:burst/4], long[:burst/3], long[:burst/2], "last")
}

func TestFollowCopyAndTruncate(t *testing.T) {
	t.Parallel()
	f := followed(t)
	path := f.source.Path
	add(t, path, "one\ntwo\n")
	f.expect(t, "one", "two")

	// Rotated, with lines in the old part that were not seen yet.
	add(t, path, "three\nfour\n")
	content, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path+".1", content, 0o600))
	must(t, os.Truncate(path, 0))
	add(t, path, "five\n")
	f.expect(t, "three", "four", "five")

	// Cut and grown beyond where it was, unnoticed until now.
	content, err = os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path+".1", content, 0o600))
	must(t, os.Truncate(path, 0))
	add(t, path, "six, a longer line\nseven\n")
	f.expect(t, "six, a longer line", "seven")

	// Cut by somebody who keeps no copy: the older part is another one, and is not shown again.
	must(t, os.Truncate(path, 0))
	f.expect(t)
	add(t, path, "eight\n")
	f.expect(t, "eight")
}

func TestFollowRename(t *testing.T) {
	t.Parallel()
	f := followed(t)
	path := f.source.Path
	add(t, path, "one\n")
	f.expect(t, "one")
	add(t, path, "two\nthree without an end")
	must(t, os.Rename(path, path+".1"))
	f.expect(t, "two") // there is no new file yet
	add(t, path, "four\n")
	f.expect(t, "three without an end", "four")
}

// writer hands what is written to it to a test.
type writer chan string

func (w writer) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

func TestCopyFollowsUntilTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")
	add(t, a, "I1120 11:00:02.000000 1 a.go:1] two\nI1120 11:00:03.000000 1 a.go:1] thr")
	add(t, b, "I1120 11:00:01.000000 1 a.go:1] one\n")
	ctx, cancel := context.WithCancel(t.Context())
	out, done := make(writer, 100), make(chan error, 1)
	go func() {
		done <- Copy(ctx, out, Config{
			Tail: All, Follow: true, Interval: time.Millisecond,
			Sources: []Source{{Name: "a", Path: a, Location: time.UTC}, {Name: "b", Path: b, Location: time.UTC}},
		})
	}()
	var got bytes.Buffer
	until := func(want string) {
		deadline := time.After(time.Minute)
		for !strings.Contains(got.String(), want) {
			select {
			case text := <-out:
				got.WriteString(text)
			case <-deadline:
				t.Fatalf("%q has not come; there is:\n%s", want, got.String())
			}
		}
	}
	until("two\n")
	add(t, a, "ee\n")
	until("three\n")
	add(t, b, "I1120 11:00:04.000000 1 a.go:1] four\n")
	until("four\n")
	cancel()
	if err := <-done; err != nil {
		t.Fatalf("the end of following is no error, but: %v", err)
	}
	want := `b | I1120 11:00:01.000000 1 a.go:1] one
a | I1120 11:00:02.000000 1 a.go:1] two
a | I1120 11:00:03.000000 1 a.go:1] three
b | I1120 11:00:04.000000 1 a.go:1] four
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Fatalf("output (-want +got):\n%s", diff)
	}
}
