// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// A service that is away for less than StaleAfter leaves what it said in use, and one that comes back is heard at once.
func TestOutage(t *testing.T) {
	t.Parallel()
	s := &script{lines: make(chan string)}
	socket, _ := onSocket(t, s.ServeHTTP)
	var ahead atomic.Int64
	start := time.Now()
	c := clientOf(t, socket, func(c *ClientConfig) {
		c.Now = func() time.Time { return start.Add(time.Duration(ahead.Load())) }
		c.StaleAfter, c.QuietAfter = time.Minute, time.Hour
	})
	told := make(chan Change, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Watch(ctx, func(change Change) { told <- change }) }()
	defer func() { cancel(); <-done }()
	s.lines <- `{"sequence":1}`
	<-told
	for !c.Live() { // an event counts as heard of when telling it has ended
		<-time.After(time.Millisecond)
	}
	s.lines <- `last:{"sequence":1}` // and nothing comes any more
	// Time does not go back.
	for _, after := range []time.Duration{59 * time.Second, 61 * time.Second} {
		ahead.Store(int64(after))
		if want := after < time.Minute; c.Live() != want {
			t.Errorf("%s after the last word: %v", after, !want)
		}
	}
	ahead.Store(int64(2 * time.Minute))
	s.lines <- `{"sequence":1}`
	if change := <-told; !change.All || mostPause > time.Second/2 {
		t.Errorf("told %+v when it is back", change)
	}
}
