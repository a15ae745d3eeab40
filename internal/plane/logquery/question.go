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
	"muster.dev/muster/internal/plane/logstore"
)

// Store is the log store (package logstore).
type Store interface {
	// Rows returns the rows that a query of LogsQL selects, by the names of their fields. An error ends them.
	Rows(ctx context.Context, query string) iter.Seq2[map[string]string, error]
}

// Question is a query about logs.
type Question struct {
	Query *logsinsights.Query
	// Logs are each ACCOUNT:LOG-GROUP. There is at least one.
	Logs []string
	// Start and End are the range of the events' times; both belong to it.
	Start, End time.Time
	// Limit is how many rows the answer may have; 0 for as many as the query says, or logsinsights.MaxRows.
	Limit int
	// Now is what the query takes for the time.
	Now time.Time
}

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
	if len(q.Logs) > 1 {
		fields = append(fields, logevent.Log)
	}
	slices.Sort(fields)
	fields = slices.Compact(fields)
	for i, name := range fields {
		fields[i] = strconv.Quote(name)
	}
	return fmt.Sprintf("%s %s %s | fields %s", oneOf(logevent.Log, q.Logs), logstore.Between(q.Start, q.End), filter, strings.Join(fields, ", "))
}

// oneOf is the filter of LogsQL for a field that has one of some values.
func oneOf(field string, values []string) string {
	if len(values) == 1 {
		return fmt.Sprintf("%q:=%q", field, values[0])
	}
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = strconv.Quote(value)
	}
	return fmt.Sprintf("%q:in(%s)", field, strings.Join(quoted, ", "))
}

// event is what a row of the store was made of (package logevent). When it was kept is not in the store: that is taken
// for the event's own time.
func (q Question) event(row map[string]string) (*evaluation.Event, error) {
	place, err := placeOf(row)
	if err != nil {
		return nil, err
	}
	at := place.Time.UnixMilli()
	event := &evaluation.Event{
		Timestamp: at, Ingested: at, Message: row[logevent.Message], Stream: row[logevent.Stream], Log: q.Logs[0], Pointer: place.Pointer(), Fields: map[string]string{},
	}
	if len(q.Logs) > 1 {
		event.Log = row[logevent.Log]
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
