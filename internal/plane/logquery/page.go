// SPDX-License-Identifier: Apache-2.0

package logquery

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"muster.dev/muster/internal/plane/logevent"
	"muster.dev/muster/internal/plane/logstore"
)

// A page looks at window rows of the store, at least. It looks at firstWindow rows first, in case its events are large.
const (
	window      = 10_000
	firstWindow = 1000
)

// Page asks for events of a log in their order.
type Page struct {
	// Log is ACCOUNT:LOG-GROUP.
	Log string
	// Streams are names of log streams; Prefix is what names begin with. At most one of them is there; all streams if neither is.
	Streams []string
	Prefix  string
	// Start and End are the range of the events' times; both belong to it.
	Start, End time.Time
	// Latest has the latest event first.
	Latest bool
	// After has the page begin behind an event, in the order of the page. It may be nil.
	After *Place
	// Limit is how many events there may be, at least 1. Bytes is how large their messages together may be; one event may be larger.
	Limit, Bytes int
	// Contains is a text that each message has. Matches says which messages are wanted; nil for all.
	Contains string
	Matches  func(message string) bool
}

// Event is an event of a page.
type Event struct {
	Place
	Stream, Message string
}

// Events is a page. The next one begins behind Last. Done says that there is no event behind it now; Last is nil if nothing was
// looked at.
type Events struct {
	Events []Event
	Last   *Place
	Done   bool
}

// Read asks the store. A page may have fewer events than its limit, or none, though others follow: it ends when it has looked at
// some 10,000 of the log.
func (p Page) Read(ctx context.Context, store Store) (Events, error) {
	if p.After != nil {
		if p.Latest {
			p.End = earlier(p.End, p.After.Time)
		} else if p.After.Time.After(p.Start) {
			p.Start = p.After.Time
		}
	}
	if p.End.Before(p.Start) {
		return Events{Done: true}, nil
	}
	enough := window
	if p.Matches == nil {
		enough = min(window, p.Limit+1)
	}
	// Events of one time are read together, since the store has no order among them. Where they are more than a window, they
	// are read with a larger one.
	for size := min(firstWindow, enough); ; {
		edge, more, err := p.edge(ctx, store, size)
		if err != nil {
			return Events{}, err
		}
		looked := p
		if more && p.Latest {
			looked.Start = edge
		} else if more {
			looked.End = edge
		}
		c := collector{page: p}
		for row, err := range store.Rows(ctx, looked.logsQL()) {
			if err != nil {
				return Events{}, err
			}
			if err := c.add(row); err != nil {
				return Events{}, err
			}
		}
		switch {
		case more && c.bound == nil && size < enough: // the page is not full
			size = enough
			continue
		case more && c.last == nil:
			size *= 4
			continue
		}
		return c.events(!more), nil
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// filter is LogsQL that selects the rows of the log.
func (p Page) filter() string {
	filter := oneOf(logevent.Log, []string{p.Log}) + " " + logstore.Between(p.Start, p.End)
	if len(p.Streams) > 0 {
		filter += " " + oneOf(logevent.Stream, p.Streams)
	}
	if p.Prefix != "" {
		filter += fmt.Sprintf(" %q:=%q*", logevent.Stream, p.Prefix)
	}
	if p.Contains != "" {
		filter += fmt.Sprintf(" %q:~%q", logevent.Message, regexp.QuoteMeta(p.Contains))
	}
	return filter
}

func (p Page) logsQL() string {
	return fmt.Sprintf("%s | fields %q, %q, %q, %q, %q", p.filter(), logevent.Time, logevent.File, logevent.Offset, logevent.Stream, logevent.Message)
}

// edge is the time of the row that is so many rows into the page; more is false if there are not so many.
func (p Page) edge(ctx context.Context, store Store, size int) (at time.Time, more bool, err error) {
	order := ""
	if p.Latest {
		order = " desc"
	}
	query := fmt.Sprintf("%s | sort by (_time%s) offset %d limit 1 | fields %q", p.filter(), order, size-1, logevent.Time)
	for row, err := range store.Rows(ctx, query) {
		if err != nil {
			return at, false, err
		}
		if at, err = time.Parse(time.RFC3339Nano, row[logevent.Time]); err != nil {
			return at, false, fmt.Errorf("reading a time of the log store: %w", err)
		}
		more = true
	}
	return at.UTC(), more, nil
}

// collector keeps the first events of a page, in bounded memory, out of rows in any order.
type collector struct {
	page  Page
	kept  []Event
	bytes int
	bound *Place // the first event that was dropped: all of the page are before it
	last  *Place // the last row that was looked at
}

// before is negative if the page has one place before the other.
func (c *collector) before(a, b Place) int {
	if c.page.Latest {
		return b.Compare(a)
	}
	return a.Compare(b)
}

func (c *collector) add(row map[string]string) error {
	place, err := placeOf(row)
	if err != nil {
		return err
	}
	if c.page.After != nil && c.before(place, *c.page.After) <= 0 {
		return nil
	}
	if c.last == nil || c.before(*c.last, place) < 0 {
		c.last = &place
	}
	if c.bound != nil && c.before(*c.bound, place) < 0 {
		return nil
	}
	message := row[logevent.Message]
	if c.page.Matches != nil && !c.page.Matches(message) {
		return nil
	}
	c.kept = append(c.kept, Event{Place: place, Stream: row[logevent.Stream], Message: message})
	if c.bytes += len(message); len(c.kept) > 2*c.page.Limit || c.bytes > 4*c.page.Bytes {
		c.cut()
	}
	return nil
}

// cut drops what cannot be in the page.
func (c *collector) cut() {
	slices.SortFunc(c.kept, func(a, b Event) int { return c.before(a.Place, b.Place) })
	bytes := 0
	for i, e := range c.kept {
		if i > 0 && (i == c.page.Limit || bytes+len(e.Message) > c.page.Bytes) {
			bound := e.Place
			c.kept, c.bound = slices.Clone(c.kept[:i]), &bound // a clone, so that the others are not held in memory
			break
		}
		bytes += len(e.Message)
	}
	c.bytes = bytes
}

func (c *collector) events(done bool) Events {
	c.cut()
	if c.bound != nil {
		return Events{Events: c.kept, Last: &c.kept[len(c.kept)-1].Place}
	}
	return Events{Events: c.kept, Last: c.last, Done: done}
}
