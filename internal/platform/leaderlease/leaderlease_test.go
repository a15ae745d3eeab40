// SPDX-License-Identifier: Apache-2.0

package leaderlease

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Each clock alone is enough: the monotonic one stands still while a machine is suspended.
func TestATenureEndsByEitherClock(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tc := range map[string]struct {
		wall, monotonic time.Duration // by which the end is away
		want            error
	}{
		"both run":                       {time.Second, time.Second, nil},
		"both ended":                     {-time.Second, -time.Second, ErrLapsed},
		"the machine was suspended":      {-time.Second, time.Second, ErrLapsed},
		"the clock was set back by much": {time.Hour, -time.Second, ErrLapsed},
	} {
		until := now.Add(tc.wall)
		(*[2]int64)(unsafe.Pointer(&until))[1] += int64(tc.monotonic - tc.wall) // the monotonic reading, which cannot be set otherwise
		tenure := NewTenure(func() time.Time { return now }, slog.New(slog.DiscardHandler))
		tenure.Renewed(until)
		if err := tenure.Check(); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := NewTenure(time.Now, nil).Check(); err != nil {
		t.Errorf("without an election: %v", err)
	}
}

// Who waits goes on when the lease is renewed, and ends with its context. Both are said once.
func TestAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		tenure := NewTenure(time.Now, slog.New(slog.NewTextHandler(&log, nil)))
		tenure.Renewed(time.Now().Add(time.Minute))
		if err := tenure.Await(t.Context()); err != nil {
			t.Errorf("while it lasts: %v", err)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // the time of a bubble
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- tenure.Await(ctx) }()
		synctest.Wait()
		cancel(ErrLost)
		if err := <-ended; !errors.Is(err, ErrLost) {
			t.Errorf("ended with %v", err)
		}
		for range 2 {
			go func() { ended <- tenure.Await(t.Context()) }()
		}
		synctest.Wait()
		if len(ended) > 0 {
			t.Error("it does not wait")
		}
		tenure.Renewed(time.Now().Add(time.Minute))
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
		if waits, on := strings.Count(log.String(), "waits for its lease"), strings.Count(log.String(), "goes on"); waits != 1 || on != 1 {
			t.Errorf("said:\n%s", log.String())
		}
	})
}

// A fenced client reads on and writes nothing once the tenure has run out. The configuration that it was made of does
// not change.
func TestFence(t *testing.T) {
	t.Parallel()
	var got []string
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Method) }))
	t.Cleanup(api.Close)
	now := time.Now()
	tenure := NewTenure(func() time.Time { return now }, slog.New(slog.DiscardHandler))
	plain := &rest.Config{Host: api.URL}
	fenced, err := rest.HTTPClientFor(tenure.Fence(plain))
	if err != nil {
		t.Fatal(err)
	}
	unfenced, err := rest.HTTPClientFor(plain)
	if err != nil {
		t.Fatal(err)
	}
	writes := []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	send := func(client *http.Client, method string) error {
		r, err := http.NewRequestWithContext(t.Context(), method, api.URL, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err == nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		}
		return err
	}
	for step, test := range []struct {
		until time.Time
		want  error
	}{{now.Add(time.Second), nil}, {now, ErrLapsed}, {now.Add(time.Second), nil}} {
		tenure.Renewed(test.until)
		got = nil
		for _, method := range writes {
			if err := send(fenced, method); !errors.Is(err, test.want) {
				t.Errorf("%d: %s: %v, want %v", step, method, err, test.want)
			}
		}
		if (len(got) > 0) != (test.want == nil) {
			t.Errorf("%d: sent %v", step, got)
		}
		got = nil
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			if err := send(fenced, method); err != nil {
				t.Errorf("%d: %s: %v", step, method, err)
			}
		}
		if err := send(unfenced, http.MethodPut); err != nil || !slices.Equal(got, []string{"GET", "HEAD", "PUT"}) {
			t.Errorf("%d: %v, sent %v", step, err, got)
		}
	}
}

// lease is one that answers as it is told.
type lease struct {
	resourcelock.Interface
	holder string
	err    error
}

func (l *lease) Identity() string { return "this" }

func (l *lease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, l.err
}

func (l *lease) Create(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }
func (l *lease) Update(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }

func TestLock(t *testing.T) {
	t.Parallel()
	for _, holder := range []string{"other", ""} {
		var until time.Time
		var lost []string
		under := &lease{holder: "other"}
		lock := &Lock{
			Interface: under, Duration: time.Minute,
			Renewed: func(at time.Time) { until = at },
			Lost:    func(_ context.Context, by string) { lost = append(lost, by) },
		}
		own, theirs := resourcelock.LeaderElectionRecord{HolderIdentity: "this"}, resourcelock.LeaderElectionRecord{}
		look := func() error { _, _, err := lock.Get(t.Context()); return err }

		if err := look(); err != nil || lost != nil { // a replica that stands by
			t.Fatalf("%v, lost %q", err, lost)
		}
		away := errors.New("away")
		under.err = away
		if err := errors.Join(lock.Create(t.Context(), own), lock.Update(t.Context(), own)); !errors.Is(err, away) || !until.IsZero() {
			t.Errorf("a lease that was not renewed lasts until %s: %v", until, err)
		}
		under.err = nil
		if err := lock.Update(t.Context(), theirs); err != nil || !until.IsZero() { // it gives the lease up
			t.Errorf("a lease of nobody lasts until %s: %v", until, err)
		}
		for verb, write := range map[string]func(context.Context, resourcelock.LeaderElectionRecord) error{"create": lock.Create, "update": lock.Update} {
			until = time.Time{}
			before := time.Now()
			if err := write(t.Context(), own); err != nil || until.Before(before.Add(time.Minute)) || until.After(time.Now().Add(time.Minute)) {
				t.Errorf("%s: until %s: %v", verb, until, err)
			}
		}
		under.holder = "this"
		if err := look(); err != nil || lost != nil {
			t.Errorf("%v, lost %q", err, lost)
		}
		under.holder, under.err = holder, away
		if err := look(); !errors.Is(err, away) || lost != nil { // it may be this one's
			t.Errorf("%v, lost %q", err, lost)
		}
		under.err = nil
		for range 2 {
			if err := look(); !errors.Is(err, ErrLost) || !slices.Equal(lost, []string{holder}) {
				t.Errorf("%v, lost %q", err, lost)
			}
		}
	}
}
