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
	filter, fields := prefilter.Of(q.Query), q.fields()
	return func(yield func(*evaluation.Event, error) bool) {
		if filter.Kind == prefilter.Nothing {
			return
		}
		for row, err := range store.Rows(ctx, q.logsQL(filter, fields)) {
			var event *evaluation.Event
			if err == nil {
				event, err = q.event(row, fields)
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// fields are those of the store that the query reads or shows.
func (q Question) fields() []string {
	fields := prefilter.Fields(q.Query)
	if !slices.Contains(fields, logevent.Message) && slices.Contains(evaluation.Columns(q.Query), "@message") {
		fields = append(fields, logevent.Message)
	}
	return fields
}

// logsQL is what the store is asked. Of a message that the query does not read it is asked for the length, in its place: messages
// are most of what events are, and a query that counts them has another use for its time.
func (q Question) logsQL(filter prefilter.Filter, reads []string) string {
	fields := append(slices.Clone(reads), logevent.Time, logevent.File, logevent.Offset, logevent.Message)
	if len(q.Logs) > 1 {
		fields = append(fields, logevent.Log)
	}
	slices.Sort(fields)
	fields = slices.Compact(fields)
	for i, name := range fields {
		fields[i] = strconv.Quote(name)
	}
	length := ""
	if !slices.Contains(reads, logevent.Message) {
		length = fmt.Sprintf("| len(%q) as %[1]q ", logevent.Message)
	}
	return fmt.Sprintf("%s %s %s %s| fields %s", oneOf(logevent.Log, q.Logs), logstore.Between(q.Start, q.End), filter, length, strings.Join(fields, ", "))
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

// event is what a row of the store was made of (package logevent), as far as the fields are read. When it was kept is not in the
// store: that is taken for the event's own time.
func (q Question) event(row map[string]string, reads []string) (*evaluation.Event, error) {
	place, err := placeOf(row)
	if err != nil {
		return nil, err
	}
	at := place.Time.UnixMilli()
	event := &evaluation.Event{
		Timestamp: at, Ingested: at, Stream: row[logevent.Stream], Log: q.Logs[0], Pointer: place.Pointer(), Fields: make(map[string]string, len(reads)),
	}
	if slices.Contains(reads, logevent.Message) {
		event.Message = row[logevent.Message]
	} else if event.Unread, err = strconv.Atoi(row[logevent.Message]); err != nil {
		return nil, fmt.Errorf("reading the length of a message in a row of the log store: %w", err)
	}
	if len(q.Logs) > 1 {
		event.Log = row[logevent.Log]
	}
	for _, name := range reads {
		switch value := row[name]; {
		case value == "" || name == logevent.Message || name == logevent.Stream || name == logevent.Log:
		default:
			event.Fields[name] = value
			event.Fields[prefilter.QueryField(name)] = value
		}
	}
	return event, nil
}
