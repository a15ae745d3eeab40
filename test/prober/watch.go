// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// lease is an object that one request at a time writes the next number into.
type lease struct {
	name, collection string
	label            string
	version          string // "" if it is not known whether the last write came through
	number           atomic.Int64

	mu    sync.Mutex
	begun map[int64]time.Time // when a number was written that its watch has not told of
}

// leaseObject is of one as the API server has it.
type leaseObject struct {
	Metadata struct {
		Name            string
		ResourceVersion string
	}
	Spec    struct{ LeaseTransitions int64 }
	Message string // of a Status
}

func newLease(collection string, n, watches int) *lease {
	return &lease{
		name: "probed-" + strconv.Itoa(n), collection: collection, label: strconv.Itoa(n % max(watches, 1)), begun: map[int64]time.Time{},
	}
}

func (l *lease) path() string { return l.collection + "/" + l.name }

// write writes the next number. The first one makes the Lease.
func (l *lease) write(ctx context.Context, w *way) (got answer, err error) {
	read := answer{}
	if l.version == "" && l.number.Load() > 0 {
		if read, err = l.take(Call{Method: http.MethodGet, Path: l.path()}.ask(ctx, w)); err != nil {
			return read, err
		}
	}
	next := Call{Method: http.MethodPut, Path: l.path(), Body: fmt.Sprintf(
		`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%q,"labels":{"watch":%q},"resourceVersion":%q},"spec":{"leaseTransitions":%d}}`,
		l.name, l.label, l.version, l.number.Load()+1)}
	l.version = ""
	l.begins(l.number.Load() + 1)
	got, err = l.take(next.ask(ctx, w))
	got.repeated = got.repeated || read.repeated
	return got, err
}

// begins notes that a number is written from now on.
func (l *lease) begins(number int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun[number] = time.Now()
}

// told is how long after its write had begun a number is told of, and forgets that.
func (l *lease) told(number int64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	begun, ok := l.begun[number]
	if !ok {
		return 0 // it comes twice
	}
	delete(l.begun, number)
	return time.Since(begun)
}

// take keeps what the Lease is by an answer.
func (l *lease) take(got answer, err error) (answer, error) {
	if err != nil {
		return got, err
	}
	var is leaseObject
	if err := json.Unmarshal(got.body, &is); err != nil {
		return got, err
	}
	l.version = is.Metadata.ResourceVersion
	l.number.Store(is.Spec.LeaseTransitions)
	return got, nil
}

// writer writes to Leases in turn.
func writer(free chan *lease) func(context.Context, *way) (answer, error) {
	return func(ctx context.Context, w *way) (answer, error) {
		select {
		case <-ctx.Done():
			return answer{}, ctx.Err()
		case <-time.After(patience):
			return answer{}, fmt.Errorf("no write before it ended: %w", context.DeadlineExceeded)
		case l := <-free:
			defer func() { free <- l }()
			return l.write(ctx, w)
		}
	}
}

// watch is of some of the Leases.
type watch struct {
	prober     *Prober
	way        *way
	number     int
	collection string
	leases     []*lease

	events  io.ReadCloser
	version string // of the last event

	mu                      sync.Mutex
	last                    map[string]int64 // by Lease
	told, resumed, repeated int
	latest                  time.Duration
	ended                   bool
}

// begin begins the watch, after its last event or from what there is now. It is repeated once as any request is.
func (w *watch) begin(ctx context.Context) error {
	query := url.Values{"watch": {"true"}, "labelSelector": {"watch=" + strconv.Itoa(w.number)}, "resourceVersion": {w.version}}
	call := Call{Method: http.MethodGet, Path: w.collection + "?" + query.Encode()}
	repeated, err := onceMore(ctx, func() error {
		response, err := call.begin(ctx, w.way) //nolint:bodyclose // read closes it, at the end of the watch
		if err == nil {
			w.events = response.Body
		}
		return err
	})
	if repeated {
		w.mu.Lock()
		w.repeated++
		w.mu.Unlock()
	}
	return err
}

// follow reads events, and begins the watch again each time that the server has ended it. That the watch failed is
// counted before it is said to have ended, after which nobody waits for it.
func (w *watch) follow(ctx context.Context) {
	err := w.read()
	for errors.Is(err, io.EOF) && ctx.Err() == nil {
		if err = w.begin(ctx); err != nil {
			break // by a connection that ended before an answer, too
		}
		w.mu.Lock()
		w.resumed++
		w.mu.Unlock()
		err = w.read()
	}
	if ctx.Err() == nil {
		w.fail(cause(err), err.Error())
	}
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
}

// read reads events until there are no more. Its error is io.EOF if the server ended the watch.
func (w *watch) read() error {
	defer func() { _ = w.events.Close() }()
	for decoder := json.NewDecoder(w.events); ; {
		var event struct {
			Type   string
			Object leaseObject
		}
		if err := decoder.Decode(&event); err != nil {
			return err
		}
		if event.Type == "ERROR" {
			return errors.New(event.Object.Message)
		}
		w.note(event.Object)
	}
}

// note compares the number of an event to the one before. An event that comes too late is none.
func (w *watch) note(is leaseObject) {
	w.version = is.Metadata.ResourceVersion
	var after time.Duration
	if at := slices.IndexFunc(w.leases, func(l *lease) bool { return l.name == is.Metadata.Name }); at >= 0 {
		after = w.leases[at].told(is.Spec.LeaseTransitions)
	}
	w.mu.Lock()
	before, known := w.last[is.Metadata.Name]
	w.last[is.Metadata.Name] = is.Spec.LeaseTransitions
	w.told++
	w.latest = max(w.latest, after)
	w.mu.Unlock()
	if after > patience {
		w.fail("timed out", fmt.Sprintf("%s: it told of %d after %s", is.Metadata.Name, is.Spec.LeaseTransitions, after.Round(time.Millisecond)))
	}
	if known && is.Spec.LeaseTransitions != before+1 {
		w.fail("gap", fmt.Sprintf("%s: %d comes after %d", is.Metadata.Name, is.Spec.LeaseTransitions, before))
	}
}

// catchUp waits until the watch has told of all that was written, or it is late.
func (w *watch) catchUp(ctx context.Context) {
	for {
		missing := w.missing()
		if missing == "" {
			return
		}
		select {
		case <-ctx.Done():
			w.fail("gap", missing)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// missing says what a watch that goes on has not told of.
func (w *watch) missing() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.leases {
		if wrote := l.number.Load(); w.last[l.name] < wrote && !w.ended {
			return fmt.Sprintf("%s: %d was written, and %d is the last that it told of", l.name, wrote, w.last[l.name])
		}
	}
	return ""
}

func (w *watch) fail(happened, what string) {
	w.prober.fail(happened, fmt.Sprintf("watch %d by %s, %s: %s", w.number, w.way.door.Name, w.way.name, what))
}
