// SPDX-License-Identifier: Apache-2.0

package logstore_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/logstore"
	"muster.dev/muster/internal/plane/logstore/logstoretest"
)

const rows = `{"_time":"2026-11-30T00:00:00Z","_msg":"a","@log":"l","@logStream":"s","@file":"f0","@offset":"0"}
{"_time":"2026-11-30T00:00:00Z","_msg":"b","@log":"l","@logStream":"s","@file":"f0","@offset":"10"}
{"_time":"2026-11-30T00:00:00Z","_msg":"c","@log":"l","@logStream":"s","@file":"f1","@offset":"20"}
`

func begin(t *testing.T) (*logstoretest.Server, *logstore.Session) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	server := logstoretest.Start(t, socket)
	session, err := (&logstore.Store{Socket: socket, Poll: time.Millisecond}).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return server, session
}

func TestInsertPersistPresent(t *testing.T) {
	server, session := begin(t)
	if err := session.Insert(t.Context(), []byte(rows)); err != nil {
		t.Fatal(err)
	}
	if n := len(server.Disk()); n != 0 {
		t.Errorf("%d rows are on the disk already", n)
	}
	stayed := 0
	server.Fail(func(path string) logstoretest.Fault {
		if path == "/metrics" && stayed == 0 {
			stayed++
			return logstoretest.Stays
		}
		return logstoretest.None
	})
	if err := session.Persist(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(server.Disk()); n != 3 || stayed != 1 {
		t.Errorf("%d rows are on the disk, asked again %d times", n, stayed)
	}
	present, err := session.Present(t.Context(), "f0", 5)
	if err != nil || !slices.Equal(slices.Collect(maps.Keys(present)), []int64{10}) {
		t.Errorf("%v %v", present, err)
	}
}

// An answer of a process that did not take the rows is no answer about them.
func TestASessionEndsWithItsProcess(t *testing.T) {
	server, session := begin(t)
	if err := session.Insert(t.Context(), []byte(rows)); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	for range 3 {
		if err := session.Persist(t.Context()); err == nil {
			t.Fatal("rows that are gone were taken for kept")
		}
	}
	if n := len(server.Disk()); n != 0 {
		t.Errorf("%d rows", n)
	}
}

func TestRefusals(t *testing.T) {
	server, session := begin(t)
	server.Fail(func(string) logstoretest.Fault { return logstoretest.Refuses })
	err := session.Insert(t.Context(), []byte(rows))
	if err == nil || !strings.Contains(err.Error(), "/insert/jsonline with 429: cannot add rows") {
		t.Errorf("%v", err)
	}
	if _, err := session.Present(t.Context(), "f0", 0); err == nil {
		t.Error("Present says that nothing is there")
	}
	if err := session.Persist(t.Context()); err == nil {
		t.Error("Persist says that all is kept")
	}
}

func TestNobodyListens(t *testing.T) {
	if _, err := (&logstore.Store{Socket: filepath.Join(t.TempDir(), "s"), Poll: time.Millisecond}).Begin(t.Context()); err == nil {
		t.Error("connected to nothing")
	}
}
