// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"maps"
	"slices"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

// Event is a log event.
type Event struct {
	Timestamp int64             // milliseconds since the epoch
	Ingested  int64             // milliseconds since the epoch
	Message   string            // as it was written; empty where the query has no use for it
	Unread    int               // bytes of a message that was left out
	Stream    string            // name of the log stream
	Log       string            // account:group
	Pointer   string            // @ptr: what tells the event from all others
	Fields    map[string]string // of a JSON event, by their flattened names; an empty text is a missing field
}

// row is an event, or a row that stats or pattern made, with the fields that the query made.
type row struct {
	event *Event // nil after stats and pattern
	made  map[string]logvalue.Value
	keys  []logvalue.Value // of the sort commands of this part of the query, those of the last one first
	order int              // among the rows of an event, or of the part before
	bytes int              // that made takes, about
}

// find returns the value of a field by its name, or of a member of a map or list that the query made.
func (r *row) find(name *logsinsights.Name) logvalue.Value {
	if value, found := r.made[name.Flat]; found {
		return value
	}
	if r.event != nil {
		if value := r.event.find(name.Flat); !value.IsNull() {
			return value
		}
	}
	return r.member(name)
}

// member returns the member of a map or list, of the innermost one that the query made.
func (r *row) member(name *logsinsights.Name) logvalue.Value {
	if len(r.made) == 0 {
		return logvalue.Null()
	}
	for i, holder := range slices.Backward(name.Holders()) {
		value, found := r.made[holder]
		if !found {
			continue
		}
		for _, segment := range name.Segments[i+1:] {
			value = value.Child(segment)
		}
		return value
	}
	return logvalue.Null()
}

func (e *Event) find(name string) logvalue.Value {
	switch name {
	case "@timestamp":
		return logvalue.Time(e.Timestamp)
	case "@ingestionTime":
		return logvalue.Time(e.Ingested)
	case "@message":
		return logvalue.Text(e.Message)
	case "@logStream":
		return present(e.Stream)
	case "@log":
		return present(e.Log)
	case "@ptr":
		return present(e.Pointer)
	default:
		return present(e.Fields[name])
	}
}

func present(text string) logvalue.Value {
	if text == "" {
		return logvalue.Null()
	}
	return logvalue.Text(text)
}

func (r *row) set(name string, value logvalue.Value) {
	if r.made == nil {
		r.made = map[string]logvalue.Value{}
	}
	r.bytes += len(name) + value.Size()
	if before, found := r.made[name]; found {
		r.bytes -= len(name) + before.Size()
	}
	r.made[name] = value
}

// copy returns a row of the same event with fields of its own.
func (r *row) copy() *row {
	fresh := *r
	fresh.made = maps.Clone(r.made)
	return &fresh
}

// rowOverhead and fieldOverhead are about what a row and a field of an event take besides their texts.
const (
	rowOverhead   = 256
	fieldOverhead = 64
)

// size returns about how many bytes of memory a row takes.
func (r *row) size() int {
	size := rowOverhead + r.bytes
	if r.event != nil {
		size += len(r.event.Message) + len(r.event.Pointer)
		for name, value := range r.event.Fields {
			size += len(name) + len(value) + fieldOverhead
		}
	}
	for _, key := range r.keys {
		size += key.Size()
	}
	return size
}
