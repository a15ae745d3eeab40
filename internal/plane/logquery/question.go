// SPDX-License-Identifier: Apache-2.0

package logquery

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/evaluation"
	"muster.dev/muster/internal/aws/logsinsights/prefilter"
	"muster.dev/muster/internal/plane/logevent"
)

// Store is the log store (package logstore).
type Store interface {
	// Rows returns the rows that a query of LogsQL selects, by the names of their fields. An error ends them.
	Rows(ctx context.Context, query string) iter.Seq2[map[string]string, error]
}

// Question is a query about a log.
type Question struct {
	Query *logsinsights.Query
	// Log is ACCOUNT:LOG-GROUP.
	Log string
	// Start and End are the range of the events' times; both belong to it.
	Start, End time.Time
	// Limit is how many rows the answer may have; 0 for as many as the query says, or logsinsights.MaxRows.
	Limit int
	// Now is what the query takes for the time.
	Now time.Time
}

// nanoseconds is RFC 3339 with all digits: of fewer digits VictoriaLogs takes the range that they leave open.
const nanoseconds = "2006-01-02T15:04:05.000000000Z07:00"

// Answer asks the store. Its errors are those of the store, of the context, and *evaluation.LimitError.
func (q Question) Answer(ctx context.Context, store Store) (*evaluation.Result, error) {
	query := q.Query
	if q.Limit > 0 {
		query = &logsinsights.Query{Commands: append(slices.Clone(query.Commands), &logsinsights.Limit{Count: q.Limit})}
	}
	return evaluation.Run(query, q.events(ctx, store), evaluation.Options{Now: q.Now, Check: ctx.Err})
}

// events are those that the answer may depend on.
func (q Question) events(ctx context.Context, store Store) iter.Seq2[*evaluation.Event, error] {
	filter := prefilter.Of(q.Query)
	return func(yield func(*evaluation.Event, error) bool) {
		if filter.Kind == prefilter.Nothing {
			return
		}
		for row, err := range store.Rows(ctx, q.logsQL(filter)) {
			var event *evaluation.Event
			if err == nil {
				event, err = q.event(row)
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// logsQL is what the store is asked.
func (q Question) logsQL(filter prefilter.Filter) string {
	fields := append(prefilter.Fields(q.Query), logevent.Time, logevent.File, logevent.Offset)
	slices.Sort(fields)
	fields = slices.Compact(fields)
	for i, name := range fields {
		fields[i] = strconv.Quote(name)
	}
	return fmt.Sprintf("%q:=%q _time:[%s, %s] %s | fields %s", logevent.Log, q.Log,
		q.Start.UTC().Format(nanoseconds), q.End.UTC().Format(nanoseconds), filter, strings.Join(fields, ", "))
}

// event is what a row of the store was made of (package logevent). When it was kept is not in the store: that is taken
// for the event's own time.
func (q Question) event(row map[string]string) (*evaluation.Event, error) {
	at, err := time.Parse(time.RFC3339Nano, row[logevent.Time])
	if err != nil {
		return nil, fmt.Errorf("reading a row of the log store: its %s: %w", logevent.Time, err)
	}
	offset, err := strconv.ParseUint(row[logevent.Offset], 10, 64)
	if err != nil || row[logevent.File] == "" {
		return nil, fmt.Errorf("reading a row of the log store: %s %q and %s %q are not those of a line", logevent.File, row[logevent.File], logevent.Offset, row[logevent.Offset])
	}
	event := &evaluation.Event{
		Timestamp: at.UnixMilli(), Ingested: at.UnixMilli(), Message: row[logevent.Message], Stream: row[logevent.Stream], Log: q.Log,
		// With all digits of the offset, so that those of a file are sorted where times are equal.
		Pointer: fmt.Sprintf("%s-%020d", row[logevent.File], offset), Fields: map[string]string{},
	}
	for _, name := range prefilter.Fields(q.Query) {
		switch value := row[name]; {
		case value == "" || name == logevent.Message || name == logevent.Stream || name == logevent.Log:
		default:
			event.Fields[name] = value
			event.Fields[prefilter.QueryField(name)] = value
		}
	}
	return event, nil
}
