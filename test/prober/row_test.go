// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// TestAnswerThatComesLate has a write wait for the one before, and succeed then: together it was too late.
func TestAnswerThatComesLate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		since    time.Duration
		repeated bool
		failed   int
	}{
		"in time":                        {patience - time.Second, false, 0},
		"late":                           {patience + time.Second, false, 1},
		"the server said when to repeat": {patience + time.Second, true, 0},
	} {
		p := &Prober{failed: map[string]int{}}
		r := p.row(&way{}, "PUT", time.Second, func(context.Context, *way) (answer, error) { return answer{repeated: tc.repeated}, nil })
		r.once(t.Context(), time.Now().Add(-tc.since))
		if r.failed != tc.failed || p.failed["timed out"] != tc.failed {
			t.Errorf("%s: %d failed, %v, want %d", name, r.failed, p.failed, tc.failed)
		}
	}
}

// TestRepeatedRead has a server refuse, once, the read before a write of which the last one failed.
func TestRepeatedRead(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	way := newWay(Config{TLS: s.Client().Transport.(*http.Transport).TLSClientConfig}, Door{Address: s.Listener.Addr().String()}, newConnection) //nolint:forcetypeassert // httptest's
	l := newLease("/leases", 0, 1)
	if _, err := l.write(t.Context(), way); err != nil {
		t.Fatal(err)
	}
	l.version = ""
	s.once.Store(http.StatusTooManyRequests)
	got, err := l.write(t.Context(), way)
	if err != nil || !got.repeated || l.number.Load() != 2 {
		t.Errorf("writing %d failed with %v, and was repeated: %t", l.number.Load(), err, got.repeated)
	}
}
