// SPDX-License-Identifier: Apache-2.0

package logstore_test

import (
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/plane/logstore"
	"muster.dev/muster/internal/plane/logstore/logstoretest"
)

const selects = `"@log":="l" _time:[2026-11-29T00:00:00Z, 2026-12-01T00:00:00Z] * | fields "@file", "_msg"`

// messages are those of the rows that a query selects, with the error that ended them.
func messages(t *testing.T, socket, query string) (all []string, ended error) {
	t.Helper()
	for row, err := range (&logstore.Store{Socket: socket}).Rows(t.Context(), query) {
		if ended = err; err == nil {
			all = append(all, row["@file"]+row["_msg"])
		}
	}
	return all, ended
}

func TestRows(t *testing.T) {
	server, session := begin(t)
	long := strings.Repeat("<", 1<<20-200) // six times as long in the answer
	if err := session.Insert(t.Context(), []byte(rows+`{"_time":"2026-11-30T00:00:00Z","_msg":"`+long+`","@log":"l","@logStream":"s","@file":"f2","@offset":"0"}`+"\n")); err != nil {
		t.Fatal(err)
	}
	got, err := messages(t, server.Socket(), selects)
	if want := "f0a f0b f1c f2" + long; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%d rows %.200q, %v", len(got), got, err)
	}
	for row, err := range (&logstore.Store{Socket: server.Socket()}).Rows(t.Context(), selects) {
		if err != nil || row["_msg"] != "a" || len(row) != 2 {
			t.Errorf("%v %v", row, err)
		}
		break
	}
}

// An answer that the store breaks off is no answer with fewer rows.
func TestRowsOfAStoreThatFails(t *testing.T) {
	server, session := begin(t)
	if err := session.Insert(t.Context(), []byte(rows)); err != nil {
		t.Fatal(err)
	}
	for fault, want := range map[logstoretest.Fault]string{
		logstoretest.GivesUp:    "took too long",
		logstoretest.Refuses:    "/select/logsql/query with 429",
		logstoretest.DiesBefore: "EOF",
		logstoretest.DiesAfter:  "EOF",
	} {
		server.Fail(func(path string) logstoretest.Fault {
			if path == "/health" {
				return logstoretest.None
			}
			return fault
		})
		if _, err := messages(t, server.Socket(), selects); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want one with %q", fault, err, want)
		}
	}
	server.Fail(nil)
	if _, err := messages(t, server.Socket(), "nonsense"); err == nil || !strings.Contains(err.Error(), "with 400: cannot parse query: nonsense") {
		t.Error(err)
	}
	if _, err := messages(t, filepath.Join(t.TempDir(), "s"), selects); err == nil {
		t.Error("nobody listens, and there is an answer")
	}
}
