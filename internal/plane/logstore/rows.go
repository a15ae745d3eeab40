// SPDX-License-Identifier: Apache-2.0

package logstore

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"

	"muster.dev/muster/internal/plane/logevent"
)

// longestRow bounds a row of an answer, in bytes. VictoriaLogs escapes some characters that a row was written with, which
// then take six bytes instead of one.
const longestRow = 8 * logevent.MaxRow

// errEnough ends an answer whose reader wants no more of it.
var errEnough = errors.New("no more rows are wanted")

// Rows returns the rows that a query of LogsQL selects, as they come, with their fields by name. A field without a value is
// absent. An error ends them. Each use of the sequence is a request on a connection of its own.
func (s *Store) Rows(ctx context.Context, query string) iter.Seq2[map[string]string, error] {
	return func(yield func(map[string]string, error) bool) {
		err := repeated(func() error {
			session, err := s.Begin(ctx)
			if err != nil {
				return err
			}
			defer session.Close()
			return session.query(ctx, query, func(row map[string]string) error {
				if !yield(row, nil) {
					return errEnough
				}
				return nil
			})
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// query gives each row that a query selects to a function, whose error ends it.
func (s *Session) query(ctx context.Context, query string, each func(map[string]string) error) error {
	_, err := s.ask(ctx, http.MethodPost, "/select/logsql/query", []byte(url.Values{"query": {query}}.Encode()), func(body io.Reader) error {
		scanner := bufio.NewScanner(body)
		scanner.Buffer(nil, longestRow)
		for scanner.Scan() {
			line := bytes.TrimSpace(scanner.Bytes())
			if len(line) == 0 {
				continue
			}
			var row map[string]string
			if err := json.Unmarshal(line, &row); err != nil {
				// After the first rows there is no other place for what went wrong (Errorf in lib/httpserver).
				return fmt.Errorf("reading a row of the log store: %w: %q", err, line[:min(len(line), longestAnswer)])
			}
			if err := each(row); err != nil {
				return err
			}
		}
		if err := scanner.Err(); err != nil {
			return fmt.Errorf("reading rows of the log store: %w", err)
		}
		return nil
	})
	return err
}
