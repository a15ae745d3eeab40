// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Pauses between two tries to follow the stream.
const (
	firstPause = 50 * time.Millisecond
	mostPause  = 250 * time.Millisecond // the service is on this host, and its caller waits to be let in
)

// startTime is how long a service may take until it is first heard of.
const startTime = 15 * time.Second

// Live reports whether the stream of changes was heard of lately: older answers may be used again.
func (c *Client) Live() bool {
	heard := c.heard.Load()
	return heard != 0 && c.sinceStart()-time.Duration(heard) <= c.config.StaleAfter
}

func (c *Client) sinceStart() time.Duration { return max(1, c.config.Now().Sub(c.start)) }

// Watch tells of changes until ctx is done. Each time that the stream begins anew it tells All first, since nobody
// knows what happened in between. Tell must be quick; an event counts as heard when it has returned.
func (c *Client) Watch(ctx context.Context, tell func(Change)) {
	pause, broken, ever := firstPause, false, false
	for ctx.Err() == nil {
		begun, err := c.follow(ctx, tell)
		if ctx.Err() != nil {
			return
		}
		if begun {
			pause, broken, ever = firstPause, false, true
		}
		// Once for each outage. A service that starts beside this program may take some seconds.
		if late := c.sinceStart() > startTime; !broken && (ever || late) {
			c.config.Logger.Warn("stream of changes from the identity service ended; tokens that were verified before are good for a while, and no other is until it is back",
				"address", c.config.where(), "for", c.config.StaleAfter, "error", err)
			broken = true
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		pause = min(2*pause, mostPause)
	}
}

// follow reads one stream until it ends or says nothing for too long.
func (c *Client) follow(ctx context.Context, tell func(Change)) (begun bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, service+PathChanges+"?"+querySessions, nil)
	if err != nil {
		return false, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	if response.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(io.LimitReader(response.Body, maxReason)) // it says why, or not
		return false, fmt.Errorf("the identity service answers %s: %s", response.Status, reasonOf(raw))
	}
	quiet := time.AfterFunc(c.config.QuietAfter, func() {
		cancel(fmt.Errorf("no event for %s", c.config.QuietAfter))
	})
	defer quiet.Stop()
	lines := bufio.NewReaderSize(response.Body, MaxAnswer)
	for sequence := uint64(1); ; sequence++ {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			if errors.Is(err, io.EOF) {
				err = errors.New("the service hung up")
			}
			return begun, err
		}
		var event Event
		if err := json.Unmarshal(line, &event); err != nil {
			return begun, errors.New("an event is not the JSON that was expected")
		}
		if event.Sequence != sequence {
			return begun, fmt.Errorf("event %d came where %d was due", event.Sequence, sequence)
		}
		if sequence == 1 {
			begun, event.Change = true, Change{All: true}
		}
		if !event.Empty() {
			tell(event.Change)
		}
		c.heard.Store(int64(c.sinceStart()))
		quiet.Reset(c.config.QuietAfter)
	}
}
