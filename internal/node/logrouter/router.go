// SPDX-License-Identifier: Apache-2.0

package logrouter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"muster.dev/muster/internal/node/fluentbit"
)

const (
	// Dir has a link to the log of each container.
	Dir = "/var/log/containers"

	defaultInterval = time.Second
	// retryInterval is the pause before events are sent again that were not taken.
	retryInterval = 5 * time.Second
	// lastTime is how long the last round may take, when the machine goes.
	lastTime = time.Second
)

// Event is what an output writes.
type Event struct {
	Time    time.Time
	Message string
}

// Sink takes events of a log stream. They are kept when it returns nil. A *[Refused] is for good.
type Sink interface {
	Put(ctx context.Context, to fluentbit.Output, stream string, events []Event) error
}

// Refused is the error of events that are not taken, however often they come.
type Refused struct{ Why string }

func (r *Refused) Error() string { return r.Why }

// Config is what a router needs.
type Config struct {
	Rules *fluentbit.Config
	// Dir is the directory of the links, and Record the file that says how far each was read.
	Dir, Record string
	Sink        Sink
	// Pods finds the pods of the machine.
	Pods fluentbit.Pods
	// Interval between two looks; a second if 0.
	Interval time.Duration
	Log      *slog.Logger
	now      func() time.Time
}

// Router brings logs where they belong. It is for one goroutine.
type Router struct {
	Config

	positions map[string]position
	waiting   map[string]*chunk // by link: what was read and is not all taken
	held      map[string]*held  // by link
	said      string
}

// chunk is what was read of a file.
type chunk struct {
	puts   []put
	after  position // where it ends
	again  time.Time
	failed error // why it waits until then
}

// put is what goes to one log stream.
type put struct {
	to     fluentbit.Output
	stream string
	events []Event
}

// New returns a router that goes on where the record says.
func New(c Config) (*Router, error) {
	if c.Rules == nil || c.Sink == nil || c.Dir == "" || c.Record == "" || c.Log == nil {
		return nil, errors.New("a log router needs its rules, a directory, the path of its record, and where events go")
	}
	if c.now == nil {
		c.now = time.Now
	}
	c.Interval = cmp.Or(c.Interval, defaultInterval)
	positions, err := readRecord(c.Record)
	if err != nil {
		return nil, err
	}
	return &Router{Config: c, positions: positions, waiting: map[string]*chunk{}, held: map[string]*held{}}, nil
}

// Run brings logs until the context ends, and then what is there once more.
func (r *Router) Run(ctx context.Context) {
	ticker := time.NewTicker(r.Interval)
	defer ticker.Stop()
	for {
		r.round(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
			defer cancel()
			r.round(last)
			return
		}
	}
}

// round reads what is new in all logs. A log that fails keeps no other from being read.
func (r *Router) round(ctx context.Context) {
	links, err := filepath.Glob(filepath.Join(r.Dir, "*.log"))
	gone := maps.Clone(r.positions)
	for _, link := range links {
		delete(gone, link)
		err = errors.Join(err, r.bring(ctx, link))
	}
	for link := range gone { // files that are open are read to their ends
		err = errors.Join(err, r.bring(ctx, link))
		if r.held[link] != nil || r.waiting[link] != nil {
			delete(gone, link)
		}
	}
	for link := range gone {
		delete(r.positions, link)
	}
	if len(gone) > 0 {
		err = errors.Join(err, writeRecord(r.Record, r.positions))
	}
	r.tell(ctx, err)
}

// tell logs why logs wait, once.
func (r *Router) tell(ctx context.Context, err error) {
	text := ""
	if err != nil && ctx.Err() == nil {
		text = err.Error()
		if text != r.said {
			r.Log.WarnContext(ctx, "logs of containers are not sent; it is tried again", "error", err)
		}
	}
	r.said = text
}

// bring sends what is new in one log.
func (r *Router) bring(ctx context.Context, link string) error {
	for ctx.Err() == nil {
		c := r.waiting[link]
		if c == nil {
			lines, after, err := r.read(link)
			if err != nil || after == r.positions[link] {
				return err
			}
			c = &chunk{puts: r.puts(link, lines), after: after}
			r.waiting[link] = c
		}
		if now := r.now(); now.Before(c.again) {
			return c.failed
		}
		if err := r.send(ctx, c); err != nil {
			c.again, c.failed = r.now().Add(retryInterval), err
			return err
		}
		positions := maps.Clone(r.positions)
		positions[link] = c.after
		if err := writeRecord(r.Record, positions); err != nil {
			return err // all of it was taken: nothing is sent again
		}
		r.positions = positions
		delete(r.waiting, link)
	}
	return nil
}

// send sends what is left of a chunk.
func (r *Router) send(ctx context.Context, c *chunk) error {
	for len(c.puts) > 0 {
		next := c.puts[0]
		err := r.Sink.Put(ctx, next.to, next.stream, next.events)
		if refused, ok := errors.AsType[*Refused](err); ok {
			r.Log.WarnContext(ctx, "events of a container's log are refused, and dropped", "group", next.to.Group, "stream", next.stream, "events", len(next.events), "why", refused.Why)
			err = nil
		}
		if err != nil {
			return fmt.Errorf("log group %s: %w", next.to.Group, err)
		}
		c.puts = c.puts[1:]
	}
	return nil
}

// puts runs lines through the filters, and orders what is left by output, log stream and time.
func (r *Router) puts(link string, lines []string) (all []put) {
	now := r.now()
	records := make([]fluentbit.Event, 0, len(lines))
	for _, line := range lines {
		records = append(records, fluentbit.Event{Tag: tagOf(link), Time: now, Record: fluentbit.Map{{Key: "log", Value: line}}})
	}
	records = r.Rules.Run(records, now, r.Pods)
	for _, output := range r.Rules.Outputs {
		streams := map[string][]Event{}
		for _, record := range records {
			if message := output.Message(record); message != "" && output.Takes(record) {
				stream := output.StreamOf(record.Tag)
				streams[stream] = append(streams[stream], Event{record.Time, message})
			}
		}
		for _, stream := range slices.Sorted(maps.Keys(streams)) {
			events := streams[stream]
			slices.SortStableFunc(events, func(a, b Event) int { return a.Time.Compare(b.Time) })
			for _, batch := range batches(events) {
				all = append(all, put{output, stream, batch})
			}
		}
	}
	return all
}

// The limits of a batch (PutLogEvents).
const (
	mostEvents = 10_000
	batchBytes = 1 << 20
	eventBytes = 26
	batchSpan  = 24 * time.Hour
	mostText   = 256 << 10
)

// batches divides events, which are in the order of their times.
func batches(events []Event) (all [][]Event) {
	begin, size := 0, 0
	for i := range events {
		events[i].Message = events[i].Message[:min(len(events[i].Message), mostText)]
		n := len(events[i].Message) + eventBytes
		if i > begin && (i-begin == mostEvents || size+n > batchBytes || events[i].Time.Sub(events[begin].Time) >= batchSpan) {
			all, begin, size = append(all, events[begin:i]), i, 0
		}
		size += n
	}
	if begin < len(events) {
		all = append(all, events[begin:])
	}
	return all
}
