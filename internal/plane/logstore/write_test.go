// SPDX-License-Identifier: Apache-2.0

package logstore_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/logevent"
	"muster.dev/muster/internal/plane/logstore"
	"muster.dev/muster/internal/plane/logstore/logstoretest"
)

func opened(t *testing.T) (*logstoretest.Server, *logstore.Store) {
	t.Helper()
	store := &logstore.Store{Socket: filepath.Join(t.TempDir(), "s"), Poll: time.Millisecond}
	return logstoretest.Start(t, store.Socket), store
}

// batch has so many rows, a second apart.
func batch(file string, rows int) logstore.Batch {
	at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	b := logstore.Batch{File: file, First: at, Last: at.Add(time.Duration(rows) * time.Second)}
	for i := range rows {
		b.Rows = append(b.Rows, logevent.Event{Log: "l", Stream: "s", File: file, Offset: int64(i), Time: at.Add(time.Duration(i) * time.Second), Text: []byte("x")}.Append(nil))
	}
	return b
}

// Batches that are written at once are each on the disk when they are answered, and once.
func TestWriteMany(t *testing.T) {
	server, store := opened(t)
	var group sync.WaitGroup
	for n := range 50 {
		group.Go(func() {
			if err := store.Write(t.Context(), batch(fmt.Sprintf("f%d", n/2), 3)); err != nil { // each is sent twice
				t.Error(err)
				return
			}
			there := 0
			for _, row := range server.Disk() {
				if row["@file"] == fmt.Sprintf("f%d", n/2) {
					there++
				}
			}
			if there != 3 {
				t.Errorf("%d rows of batch %d", there, n)
			}
		})
	}
	group.Wait()
	if n := len(server.Disk()); n != 75 {
		t.Errorf("%d rows, want 75", n)
	}
}

// A session that writes keeps others from writing, and nobody from reading.
func TestWritersTakeTurns(t *testing.T) {
	server, store := opened(t)
	session, err := store.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Insert(t.Context(), []byte(rows)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- store.Write(t.Context(), batch("f", 1)) }()
	for _, err := range store.Rows(t.Context(), `"@log":="l" | limit 1`) {
		if err != nil {
			t.Error(err)
		}
	}
	select {
	case err := <-done:
		t.Errorf("written meanwhile: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := session.Persist(t.Context()); err != nil {
		t.Fatal(err)
	}
	session.Close()
	if err := <-done; err != nil || len(server.Disk()) != 4 {
		t.Errorf("%v, %d rows", err, len(server.Disk()))
	}
}

// A process that is started meanwhile is waited for.
func TestWriteWaitsForTheProcess(t *testing.T) {
	store := &logstore.Store{Socket: filepath.Join(t.TempDir(), "s"), Poll: time.Millisecond}
	done := make(chan error, 1)
	go func() { done <- store.Write(t.Context(), batch("f", 1)) }()
	<-time.After(20 * time.Millisecond)
	server := logstoretest.Start(t, store.Socket)
	if err := <-done; err != nil || len(server.Disk()) != 1 {
		t.Errorf("%v, %d rows", err, len(server.Disk()))
	}
}

func TestDelete(t *testing.T) {
	server, store := opened(t)
	for _, file := range []string{"f0", "f1"} {
		if err := store.Write(t.Context(), batch(file, 4)); err != nil {
			t.Fatal(err)
		}
	}
	asked := 0
	server.Fail(func(path string) logstoretest.Fault {
		if path == "/delete/active_tasks" {
			if asked++; asked < 3 {
				return logstoretest.Stays
			}
		}
		return logstoretest.None
	})
	if err := store.Delete(t.Context(), `"@log":="l" "@file":="f0"`); err != nil || len(server.Disk()) != 4 || asked != 3 {
		t.Errorf("%v, %d rows, asked %d times", err, len(server.Disk()), asked)
	}
	if err := store.Delete(t.Context(), "rubbish"); err == nil {
		t.Error("a filter that is not read")
	}
	server.Fail(func(string) logstoretest.Fault { return logstoretest.Refuses })
	if err := store.Delete(t.Context(), `"@log":="l"`); err == nil || errors.Is(err, logstore.ErrDeleting) {
		t.Error(err)
	}
}

// VictoriaLogs finds nothing where a time does not fit into 64 bits of nanoseconds.
func TestBetween(t *testing.T) {
	first, last := time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	if got, want := logstore.Between(first, last), "_time:[1970-01-01T00:00:00.000000000Z, 2262-04-11T23:47:16.854775807Z]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	at := time.Date(2026, 11, 30, 12, 0, 0, 5, time.FixedZone("", 3600))
	if got, want := logstore.Between(at, at), "_time:[2026-11-30T11:00:00.000000005Z, 2026-11-30T11:00:00.000000005Z]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
