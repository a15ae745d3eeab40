// SPDX-License-Identifier: Apache-2.0

package logs_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/platform/logs"
)

var written = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// put writes a log file that was last written at noon.
func put(t *testing.T, dir, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, written, written); err != nil {
		t.Fatal(err)
	}
	return path
}

func source(path string) logs.Source {
	return logs.Source{
		Name: strings.TrimSuffix(filepath.Base(path), ".log"), Path: path, Older: []string{path + ".1"}, Location: time.UTC,
	}
}

func printed(t *testing.T, cfg logs.Config) []string {
	t.Helper()
	var out bytes.Buffer
	if err := logs.Copy(t.Context(), &out, cfg); err != nil {
		t.Fatal(err)
	}
	if out.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func expect(t *testing.T, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("lines (-want +got):\n%s", diff)
	}
}

func TestCopyReadsOlderPartFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "etcd.log.1", "one", "two")
	path := put(t, dir, "etcd.log", "three", "four")
	for tail, want := range map[int][]string{
		logs.All: {"one", "two", "three", "four"},
		0:        nil,
		1:        {"four"},
		2:        {"three", "four"},
		3:        {"two", "three", "four"},
		4:        {"one", "two", "three", "four"},
		9:        {"one", "two", "three", "four"},
	} {
		expect(t, want, printed(t, logs.Config{Sources: []logs.Source{source(path)}, Tail: tail}))
	}
}

func TestCopyOfNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	expect(t, nil, printed(t, logs.Config{Sources: []logs.Source{source(filepath.Join(dir, "none.log"))}, Tail: 5}))
	empty := filepath.Join(dir, "empty.log")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, nil, printed(t, logs.Config{Sources: []logs.Source{source(empty)}, Tail: 5}))
}

// The tail is found by reading backwards: whatever the lengths of lines, it is what reading it all gives.
func TestTailAcrossBlocks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all []string
	for i := range 400 {
		all = append(all, fmt.Sprintf("%03d%s", i, strings.Repeat("x", i*i%3000)))
	}
	path := put(t, dir, "big.log", all...)
	for _, tail := range []int{1, 2, 57, 399, 400} {
		expect(t, all[len(all)-tail:], printed(t, logs.Config{Sources: []logs.Source{source(path)}, Tail: tail}))
	}
}

func TestCopyWithoutLastNewline(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.log")
	if err := os.WriteFile(path, []byte("one\r\ntwo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tail := range []int{logs.All, 2} {
		expect(t, []string{"one", "two"}, printed(t, logs.Config{Sources: []logs.Source{source(path)}, Tail: tail}))
	}
	expect(t, []string{"two"}, printed(t, logs.Config{Sources: []logs.Source{source(path)}, Tail: 1}))
}

func TestCopyMergesByTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kubelet := put(t, dir, "kubelet.log",
		"I1120 11:00:01.000000 1 a.go:1] one",
		"goroutine 1 [running]:",
		"\tmain.go:1",
		"I1120 11:00:04.000000 1 a.go:1] four",
	)
	containerd := put(t, dir, "containerd.log",
		`time="2026-11-20T11:00:02Z" level=info msg=two`,
		`time="2026-11-20T11:00:05Z" level=info msg=five`,
	)
	node := put(t, dir, "node.log", `{"time":"2026-11-20T11:00:03Z","msg":"three"}`)
	sources := []logs.Source{source(kubelet), source(containerd), source(node)}
	all := []string{
		`kubelet    | I1120 11:00:01.000000 1 a.go:1] one`,
		`kubelet    | goroutine 1 [running]:`,
		"kubelet    | \tmain.go:1",
		`containerd | time="2026-11-20T11:00:02Z" level=info msg=two`,
		`node       | {"time":"2026-11-20T11:00:03Z","msg":"three"}`,
		`kubelet    | I1120 11:00:04.000000 1 a.go:1] four`,
		`containerd | time="2026-11-20T11:00:05Z" level=info msg=five`,
	}
	expect(t, all, printed(t, logs.Config{Sources: sources, Tail: logs.All}))
	expect(t, all[4:], printed(t, logs.Config{Sources: sources, Tail: 3}))
	expect(t, nil, printed(t, logs.Config{Sources: sources, Tail: 0}))
	since := time.Date(2026, 11, 20, 11, 0, 2, 500, time.UTC)
	expect(t, all[4:], printed(t, logs.Config{Sources: sources, Tail: logs.All, Since: since}))
	expect(t, all[6:], printed(t, logs.Config{Sources: sources, Tail: 1, Since: since}))
}

func TestSinceWithoutStamps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := put(t, dir, "plain.log", "hello", "world")
	stamped := put(t, dir, "stamped.log", "a banner", "I1120 11:00:04.000000 1 a.go:1] x")
	// A file without any time counts as written when it was last written.
	expect(t, []string{"hello", "world"}, printed(t, logs.Config{Sources: []logs.Source{source(path)}, Tail: logs.All, Since: written}))
	expect(t, nil, printed(t, logs.Config{Sources: []logs.Source{source(path)}, Tail: logs.All, Since: written.Add(time.Second)}))
	// Lines before the first time go with it.
	at := time.Date(2026, 11, 20, 11, 0, 4, 0, time.UTC)
	expect(t, []string{"a banner", "I1120 11:00:04.000000 1 a.go:1] x"}, printed(t, logs.Config{Sources: []logs.Source{source(stamped)}, Tail: logs.All, Since: at}))
	expect(t, nil, printed(t, logs.Config{Sources: []logs.Source{source(stamped)}, Tail: logs.All, Since: at.Add(time.Second)}))
}

func TestVeryLongLineIsBroken(t *testing.T) {
	t.Parallel()
	path := put(t, t.TempDir(), "x.log", strings.Repeat("y", 3<<20), "end")
	got := printed(t, logs.Config{Sources: []logs.Source{source(path)}, Tail: logs.All})
	if len(got) < 3 || got[len(got)-1] != "end" || len(strings.Join(got[:len(got)-1], "")) != 3<<20 {
		t.Fatalf("%d pieces", len(got))
	}
}
