// SPDX-License-Identifier: Apache-2.0

package logshipper

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/logstore"
	"muster.dev/muster/internal/plane/logstore/logstoretest"
)

// world is a component that writes a log, a log store, and a shipper between them.
type world struct {
	t       testing.TB
	dir     string
	source  Source
	server  *logstoretest.Server
	shipper *Shipper
	logged  bytes.Buffer

	written []string // lines that must be there
	number  int
}

func newWorld(t testing.TB, copied bool) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, dir: dir, server: logstoretest.Start(t, filepath.Join(dir, "s"))}
	w.source = Source{Path: filepath.Join(dir, "logs", "audit.log"), Copied: copied, Log: "000000000000:/aws/eks/blue/cluster", Stream: "kube-apiserver-audit-1", Zone: time.UTC, On: true}
	if err := os.Mkdir(filepath.Join(dir, "logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.restart()
	return w
}

// restart begins a shipper that remembers nothing.
func (w *world) restart() {
	w.t.Helper()
	var err error
	w.shipper, err = New(Config{
		Sources: func() []Source { return []Source{w.source} }, Store: &logstore.Store{Socket: filepath.Join(w.dir, "s"), Poll: time.Millisecond}, Ready: func() error { return nil },
		Record: filepath.Join(w.dir, "shipped.json"), Log: slog.New(slog.NewTextHandler(&w.logged, nil)),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// write appends a line of its own to the log, which ends with more text.
func (w *world) write(more string) {
	w.t.Helper()
	w.number++
	line := fmt.Sprintf(`time=2026-11-30T00:00:%02dZ n=%d %s`, w.number%60, w.number, more)
	w.append(line + "\n")
	w.written = append(w.written, line)
}

func (w *world) append(text string) {
	w.t.Helper()
	f, err := os.OpenFile(w.source.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if closeErr := f.Close(); err != nil || closeErr != nil {
		w.t.Fatal(err, closeErr)
	}
}

// rotate does as package supervise does, or as the API server does.
func (w *world) rotate() {
	w.t.Helper()
	content, err := os.ReadFile(w.source.Path)
	if os.IsNotExist(err) || len(content) == 0 {
		return
	}
	w.number++
	if w.source.Copied {
		err = os.WriteFile(w.source.Path+".1", content, 0o600)
		if truncateErr := os.Truncate(w.source.Path, 0); truncateErr != nil {
			w.t.Fatal(truncateErr)
		}
	} else {
		err = os.Rename(w.source.Path, strings.TrimSuffix(w.source.Path, ".log")+fmt.Sprintf("-2026-11-30T00-00-00.%06d.log", w.number))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) turn() error {
	_, err := w.shipper.turn(w.t.Context())
	return err
}

// settled makes rounds without faults until there is nothing to read.
func (w *world) settled() {
	w.t.Helper()
	w.server.Fail(nil)
	for range 20 {
		if err := w.turn(); err != nil {
			w.t.Fatal(err)
		}
	}
}

// expect compares what is on the log store's disk with the lines that were written.
func (w *world) expect() {
	w.t.Helper()
	w.settled()
	var got []string
	ids := map[string]bool{}
	for _, row := range w.server.Disk() {
		got = append(got, row["_msg"])
		if ids[row["@file"]+row["@offset"]] {
			w.t.Errorf("two rows are %s %s", row["@file"], row["@offset"])
		}
		ids[row["@file"]+row["@offset"]] = true
		if row["@log"] != w.source.Log || row["@logStream"] != w.source.Stream || !strings.HasPrefix(row["_time"], "2026-11-30T00:00:") {
			w.t.Errorf("%v", row)
		}
	}
	want := slices.Clone(w.written)
	for i := range want {
		want[i] = strings.ToValidUTF8(want[i], "\ufffd")
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Errorf("%d rows, want %d: %s", len(got), len(want), difference(got, want))
	}
}

// difference tells how often lines are there that are not there once.
func difference(got, want []string) string {
	times := map[string]int{}
	for _, line := range got {
		times[line]++
	}
	for _, line := range want {
		times[line]--
	}
	var told []string
	for line, n := range times {
		if n != 0 {
			told = append(told, strconv.Itoa(n)+" "+line[:min(len(line), 60)])
		}
	}
	slices.Sort(told)
	return strings.Join(told, "; ")
}
