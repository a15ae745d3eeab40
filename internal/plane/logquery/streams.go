// SPDX-License-Identifier: Apache-2.0

package logquery

import (
	"context"
	"fmt"
	"time"

	"muster.dev/muster/internal/plane/logevent"
)

// Stream is a log stream that has events.
type Stream struct {
	Name string
	// Oldest and Newest are the times of its first and last event.
	Oldest, Newest time.Time
}

// Streams lists the log streams of a log that have events, in no order. log is ACCOUNT:LOG-GROUP.
func Streams(ctx context.Context, store Store, log string) ([]Stream, error) {
	var all []Stream
	for row, err := range store.Rows(ctx, fmt.Sprintf("%s | stats by (%q) min(_time) as oldest, max(_time) as newest", oneOf(logevent.Log, []string{log}), logevent.Stream)) {
		if err != nil {
			return nil, err
		}
		stream := Stream{Name: row[logevent.Stream]}
		if stream.Oldest, err = time.Parse(time.RFC3339Nano, row["oldest"]); err == nil {
			stream.Newest, err = time.Parse(time.RFC3339Nano, row["newest"])
		}
		if err != nil {
			return nil, fmt.Errorf("reading the times of a log stream of the log store: %w", err)
		}
		if stream.Name != "" {
			all = append(all, stream)
		}
	}
	return all, nil
}

// HasStream reports whether a log stream has events.
func HasStream(ctx context.Context, store Store, log, stream string) (bool, error) {
	query := fmt.Sprintf("%s %s | limit 1 | fields %q", oneOf(logevent.Log, []string{log}), oneOf(logevent.Stream, []string{stream}), logevent.Offset)
	for _, err := range store.Rows(ctx, query) {
		return err == nil, err
	}
	return false, nil
}

// OfLog is the filter of LogsQL for the rows of a log, and of one of its log streams if it is not empty.
func OfLog(log, stream string) string {
	filter := oneOf(logevent.Log, []string{log})
	if stream != "" {
		filter += " " + oneOf(logevent.Stream, []string{stream})
	}
	return filter
}
