// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// row is a call by one way to one door, again and again.
type row struct {
	prober *Prober
	way    *way
	name   string
	every  time.Duration
	ask    func(context.Context, *way) (answer, error)

	mu       sync.Mutex
	took     []time.Duration
	repeated int
	failed   int
}

func (p *Prober) row(w *way, name string, every time.Duration, ask func(context.Context, *way) (answer, error)) *row {
	return &row{prober: p, way: w, name: name, every: every, ask: ask}
}

// loop begins a request each time that it is due, until asking ends. It returns when all are answered.
func (r *row) loop(asking, all context.Context, first time.Time) {
	var requests sync.WaitGroup
	defer requests.Wait()
	for due := first; ; due = due.Add(r.every) {
		select {
		case <-asking.Done():
			return
		case <-time.After(time.Until(due)):
		}
		requests.Go(func() { r.once(all, due) })
	}
}

// once asks, and counts how that went. An answer that comes too late is none, whatever the request has waited for.
func (r *row) once(ctx context.Context, due time.Time) {
	got, err := r.ask(ctx, r.way)
	if ctx.Err() != nil {
		return // it is over
	}
	took := time.Since(due)
	if err == nil && !got.repeated && took > patience {
		err = fmt.Errorf("the answer came too late: %w", context.DeadlineExceeded)
	}
	r.mu.Lock()
	r.took = append(r.took, took)
	if got.repeated {
		r.repeated++
	}
	if err != nil {
		r.failed++
	}
	r.mu.Unlock()
	r.prober.asked.Add(1)
	if err != nil {
		r.prober.fail(cause(err), fmt.Sprintf("%s by %s, %s, after %s: %v", r.name, r.way.door.Name, r.way.name, took.Round(time.Millisecond), err))
	}
}

// answer is what a server answered.
type answer struct {
	body     []byte
	repeated bool // it is the second one
}

// ask sends the call.
func (c Call) ask(ctx context.Context, w *way) (got answer, err error) {
	repeated, err := onceMore(ctx, func() (err error) {
		got, err = c.send(ctx, w)
		return err
	})
	got.repeated = repeated
	return got, err
}

// onceMore tries something. It repeats nothing but a 429 that says when, which may be half a minute later where many
// were refused before, and what a server that leaves has not looked at.
func onceMore(ctx context.Context, try func() error) (repeated bool, err error) {
	err = try()
	var after time.Duration
	if refused := (*statusError)(nil); errors.As(err, &refused) {
		after = refused.after
	}
	if after == 0 && !notProcessed(err) {
		return false, err
	}
	select {
	case <-ctx.Done():
		return true, ctx.Err()
	case <-time.After(after):
		return true, try()
	}
}

// send sends the call once.
func (c Call) send(ctx context.Context, w *way) (got answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil { // by which the connection was closed
			err = ctx.Err()
		}
	}()
	response, err := c.begin(ctx, w)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	if got.body, err = io.ReadAll(response.Body); err != nil {
		return answer{}, err
	}
	if !strings.Contains(string(got.body), c.Says) {
		return got, fmt.Errorf("it does not say %s: %.200s", c.Says, got.body)
	}
	return got, nil
}

// begin sends the call, and reads the beginning of an answer of success.
func (c Call) begin(ctx context.Context, w *way) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, c.Method, "https://"+w.door.Address+c.Path, strings.NewReader(c.Body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := w.RoundTrip(request)
	if err != nil || response.StatusCode/100 == 2 {
		return response, err
	}
	defer func() { _ = response.Body.Close() }()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	refused := &statusError{code: response.StatusCode, said: strings.TrimSpace(string(said))}
	if seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")); refused.code == http.StatusTooManyRequests {
		refused.after = time.Duration(seconds) * time.Second
	}
	return nil, refused
}

// statusError is of an answer that is not of success. after is not 0 if it is a 429 that says when to repeat the request.
type statusError struct {
	code  int
	said  string
	after time.Duration
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%d %s: %.200s", e.code, http.StatusText(e.code), e.said)
}
