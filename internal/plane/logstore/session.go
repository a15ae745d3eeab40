// SPDX-License-Identifier: Apache-2.0

package logstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/internal/plane/logevent"
)

const (
	defaultPoll = 100 * time.Millisecond
	// persistTime is how long rows may be in memory. VictoriaLogs writes rows a second after they came, if the disk lets it.
	persistTime = time.Minute
	// requestTime is how long one request may take.
	requestTime = time.Minute
	// longestAnswer is how much of an error is told, in bytes.
	longestAnswer = 512
)

// errOver says that the process at the other end has closed the connection.
var errOver = errors.New("the log store has closed the connection: it ended, or was started again")

// tries is how often something is done whose session ended.
const tries = 3

// repeated does something again if its session ended: the process was started again, or net/http gave the connection up, as it does
// where a request takes it 50 ms to write (maxWriteWaitBeforeConnReuse), on a host that is busy.
func repeated(do func() error) (err error) {
	for range tries {
		if err = do(); !errors.Is(err, errOver) {
			return err
		}
	}
	return err
}

// Store is the log store of an account. All of a process that write to it share one Store: rows are in memory while
// anybody writes, and Persist waits until none is.
type Store struct {
	// Socket is the path of the unix socket that it listens at.
	Socket string
	// Poll is the pause between two looks at how many rows are in memory; 100 ms if 0.
	Poll time.Duration

	turns turns
	mu    sync.Mutex
	next  *group // that waits for its turn, see Write
}

// Session is a connection to the process that is the log store now. It is for one goroutine. From its first row on it is
// the only session of its Store that writes, until it is closed.
type Session struct {
	client    *http.Client
	transport *http.Transport
	poll      time.Duration
	turns     *turns
	writes    bool // it has the turn
}

// Begin connects. The session must be closed.
func (s *Store) Begin(ctx context.Context) (*Session, error) {
	connection, err := new(net.Dialer).DialContext(ctx, "unix", s.Socket)
	if err != nil {
		return nil, fmt.Errorf("connecting to the log store: %w", err)
	}
	transport := &http.Transport{
		MaxConnsPerHost: 1, DisableCompression: true, // it is this host's memory
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			if connection == nil {
				return nil, errOver
			}
			first := connection
			connection = nil
			return first, nil
		},
	}
	session := &Session{poll: cmp.Or(s.Poll, defaultPoll), transport: transport, turns: &s.turns, client: &http.Client{Transport: transport, Timeout: requestTime}}
	// The connection is the transport's from the first request on, which Close then closes.
	if _, err := session.ask(ctx, http.MethodGet, "/health", nil, nil); err != nil {
		session.Close()
		return nil, err
	}
	return session, nil
}

// Close ends the session. Rows that were inserted and not persisted may or may not be there later.
func (s *Session) Close() {
	s.transport.CloseIdleConnections()
	if s.writes {
		s.writes = false
		s.turns.end()
	}
}

// hold waits until no other session of the store writes.
func (s *Session) hold(ctx context.Context) error {
	if s.writes {
		return nil
	}
	if err := s.turns.begin(ctx); err != nil {
		return fmt.Errorf("waiting for others who write to the log store: %w", err)
	}
	s.writes = true
	return nil
}

// Insert writes rows (package logevent), a line each. After an error any of them may be there.
func (s *Session) Insert(ctx context.Context, rows []byte) error {
	if err := s.hold(ctx); err != nil {
		return err
	}
	query := url.Values{"_stream_fields": {logevent.Log + "," + logevent.Stream}, "_time_field": {logevent.Time}, "_msg_field": {logevent.Message}}
	_, err := s.ask(ctx, http.MethodPost, "/insert/jsonline?"+query.Encode(), rows, nil)
	return err
}

// Persist returns when all rows that were inserted are on the disk.
func (s *Session) Persist(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, persistTime)
	defer cancel()
	if err := s.flush(ctx); err != nil {
		return err
	}
	first := int64(-1)
	for {
		page, rows, err := s.inMemory(ctx)
		if err != nil {
			return err
		}
		// The first page may be from before the flush: VictoriaLogs makes a new page each second (lib/appmetrics). Another
		// page than the first was made after the first was asked for.
		if first < 0 {
			first = page
		}
		if page != first && rows == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until the log store has written %d rows to its disk: %w", rows, ctx.Err())
		case <-time.After(s.poll):
		}
	}
}

// flush has queries see all rows that were inserted.
func (s *Session) flush(ctx context.Context) error {
	_, err := s.ask(ctx, http.MethodPost, "/internal/force_flush", nil, nil)
	return err
}

// inMemory is how many rows the process had in memory only when it made the page of its metrics that it answers with, and
// how many requests it had answered by then, which is another number for each page.
func (s *Session) inMemory(ctx context.Context) (page, rows int64, err error) {
	answer, err := s.ask(ctx, http.MethodGet, "/metrics", nil, nil)
	if err != nil {
		return 0, 0, err
	}
	// lib/httpserver; app/vlstorage, writeStorageMetrics
	const requests, memory, pending = "vm_http_requests_all_total ", `vl_storage_rows{type="storage/inmemory"} `, `vl_pending_rows{type="storage"} `
	values := map[string]int64{}
	for line := range strings.Lines(string(answer)) {
		for _, name := range []string{requests, memory, pending} {
			if text, found := strings.CutPrefix(line, name); found {
				if values[name], err = strconv.ParseInt(strings.TrimSpace(text), 10, 64); err != nil {
					return 0, 0, fmt.Errorf("reading the log store's metric %s: %w", name, err)
				}
			}
		}
	}
	if len(values) != 3 {
		return 0, 0, fmt.Errorf("the log store's metrics lack some of those that Muster waits for, and have %v", values)
	}
	return values[requests], values[memory] + values[pending], nil
}

// Present returns the offsets in bytes of the lines of a file that the log store has, beginning with an offset.
func (s *Session) Present(ctx context.Context, file string, from int64) (map[int64]bool, error) {
	if err := s.flush(ctx); err != nil {
		return nil, err
	}
	// Without a filter by stream: a process that was killed may have written a row to the disk and its stream's name not.
	return s.offsets(ctx, fmt.Sprintf("%q:=%q %q:>=%d | fields %q", logevent.File, file, logevent.Offset, from, logevent.Offset))
}

// offsets are those of the rows that a query selects.
func (s *Session) offsets(ctx context.Context, query string) (map[int64]bool, error) {
	present := map[int64]bool{}
	err := s.query(ctx, query, func(row map[string]string) error {
		offset, err := strconv.ParseInt(row[logevent.Offset], 10, 64)
		if err != nil {
			return fmt.Errorf("reading an offset of the log store: %w", err)
		}
		present[offset] = true
		return nil
	})
	return present, err
}

// ask sends a request; read gets the answer, which is returned without it.
func (s *Session) ask(ctx context.Context, method, path string, body []byte, read func(io.Reader) error) ([]byte, error) {
	what, _, _ := strings.Cut(path, "?")
	request, err := http.NewRequestWithContext(ctx, method, "http://log-store"+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("asking the log store: %w", err)
	}
	request.Header.Set("Content-Type", "application/stream+json") // a form is what VictoriaLogs takes a body for else
	if read != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	request.GetBody = nil // a request is not sent again on another connection
	response, err := s.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the log store for %s: %w", what, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode/100 != 2 {
		said, _ := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
		return nil, fmt.Errorf("the log store answers %s with %d: %s", what, response.StatusCode, bytes.TrimSpace(said))
	}
	if read != nil {
		if err := read(response.Body); err != nil {
			return nil, err
		}
	}
	// Read to its end, so that the connection is used again.
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the log store's answer to %s: %w", what, err)
	}
	return answer, nil
}
