// SPDX-License-Identifier: Apache-2.0

package logquery_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/logevent"
	"muster.dev/muster/internal/plane/logquery"
	"muster.dev/muster/internal/plane/logstore"
	"muster.dev/muster/internal/plane/logstore/logstoretest"
)

// scattered starts a log store with so many events in a few streams and files, several at a time. It returns them in order.
func scattered(t *testing.T, random *rand.Rand, n int) (*logstore.Store, []logquery.Event) {
	t.Helper()
	store := &logstore.Store{Socket: filepath.Join(t.TempDir(), "s"), Poll: time.Millisecond}
	logstoretest.Start(t, store.Socket)
	var all []logquery.Event
	for offset := range n {
		all = append(all, logquery.Event{
			Place:   logquery.Place{Time: noon.Add(time.Duration(random.IntN(n/3+1)) * time.Nanosecond), File: fmt.Sprint("f", random.IntN(3)), Offset: int64(offset)},
			Stream:  fmt.Sprint("s", random.IntN(2)),
			Message: strings.Repeat(fmt.Sprint(random.IntN(2)), 1+random.IntN(20)),
		})
	}
	var rows []byte
	for _, e := range all {
		rows = logevent.Event{Log: log, Stream: e.Stream, File: e.File, Offset: e.Offset, Time: e.Time, Text: []byte(e.Message)}.Append(rows)
	}
	session, err := store.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := session.Insert(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b logquery.Event) int { return a.Compare(b.Place) })
	return store, all
}

// Pages of any size have each event once and in order, in both directions, though many have the same time.
func TestPagesHaveEachEventOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 30 {
		store, all := scattered(t, random, 1+random.IntN(60))
		page := logquery.Page{
			Log: log, Start: noon, End: noon.Add(time.Hour), Limit: 1 + random.IntN(7), Bytes: 1 + random.IntN(60), Latest: round%2 == 1,
		}
		wanted := func(logquery.Event) bool { return true }
		switch round % 3 {
		case 1:
			page.Streams = []string{"s0"}
			wanted = func(e logquery.Event) bool { return e.Stream == "s0" }
		case 2:
			page.Contains, page.Matches = "1", func(message string) bool { return strings.Contains(message, "1") }
			wanted = func(e logquery.Event) bool { return strings.Contains(e.Message, "1") }
		}
		want := slices.DeleteFunc(slices.Clone(all), func(e logquery.Event) bool { return !wanted(e) })
		if page.Latest {
			slices.Reverse(want)
		}
		var got []logquery.Event
		for turn := 0; ; turn++ {
			if turn > 200 {
				t.Fatal("pages do not end")
			}
			read, err := page.Read(t.Context(), store)
			if err != nil {
				t.Fatal(err)
			}
			bytes := 0
			for _, e := range read.Events {
				bytes += len(e.Message)
			}
			if n := len(read.Events); n > page.Limit || n > 1 && bytes > page.Bytes {
				t.Errorf("a page of %d events and %d bytes, %+v", n, bytes, page)
			}
			got = append(got, read.Events...)
			if read.Done {
				break
			}
			next, err := logquery.ParsePlace(read.Last.String())
			if err != nil {
				t.Fatal(err)
			}
			page.After = &next
		}
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: %d events, want %d\n%v\n%v", round, len(got), len(want), got, want)
		}
	}
}

// counted is a log store that counts the rows that are read of it.
type counted struct {
	logquery.Store
	rows int
}

func (c *counted) Rows(ctx context.Context, query string) iter.Seq2[map[string]string, error] {
	return func(yield func(map[string]string, error) bool) {
		for row, err := range c.Store.Rows(ctx, query) {
			c.rows++
			if !yield(row, err) {
				return
			}
		}
	}
}

// A page of few large events does not read ten thousand of them, and a page of many small events is full.
func TestPagesReadWhatTheyNeed(t *testing.T) {
	store, _ := scattered(t, rand.New(rand.NewPCG(5, 6)), 4000)
	for _, c := range []struct{ bytes, events, rows int }{{200, 10, 1500}, {1 << 20, 3000, 4500}} {
		count := &counted{Store: store}
		page := logquery.Page{Log: log, Start: noon, End: noon.Add(time.Hour), Limit: 3000, Bytes: c.bytes}
		read, err := page.Read(t.Context(), count)
		if err != nil || len(read.Events) < c.events || count.rows > c.rows || read.Done {
			t.Errorf("a page of %d bytes has %d events and read %d rows: %v", c.bytes, len(read.Events), count.rows, err)
		}
	}
}

func TestStreams(t *testing.T) {
	store, all := scattered(t, rand.New(rand.NewPCG(3, 4)), 50)
	streams, err := logquery.Streams(t.Context(), store, log)
	if err != nil || len(streams) != 2 {
		t.Fatal(streams, err)
	}
	for _, s := range streams {
		of := slices.DeleteFunc(slices.Clone(all), func(e logquery.Event) bool { return e.Stream != s.Name })
		if !s.Oldest.Equal(of[0].Time) || !s.Newest.Equal(of[len(of)-1].Time) {
			t.Errorf("%v", s)
		}
	}
	for name, want := range map[string]bool{"s0": true, "s": false, "s2": false} {
		if has, err := logquery.HasStream(t.Context(), store, log, name); err != nil || has != want {
			t.Errorf("%s: %v %v", name, has, err)
		}
	}
	if has, err := logquery.HasStream(t.Context(), store, "other", "s0"); err != nil || has {
		t.Errorf("another log's: %v %v", has, err)
	}
}

func TestPlaces(t *testing.T) {
	for _, text := range []string{"", "1/a", "x/a/1", "1/a/x", "1/a/1/2"} {
		if _, err := logquery.ParsePlace(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
