// SPDX-License-Identifier: Apache-2.0

package sqs

import (
	"context"
	"maps"
	"sync"
	"time"

	"muster.dev/muster/internal/aws/awsfront"
)

// maxPolls is how many receivers of one user or role wait at once: each of them has one of the
// 1,024 connections of the account's endpoint. A receiver beyond that is answered at once, as one that does not wait.
const maxPolls = 64

// polls are the receivers that wait, by user or role.
type polls struct {
	mu sync.Mutex
	of map[string]int
}

// begin counts a receiver, until the function that it returns is called. It reports whether the receiver may wait.
func (p *polls) begin(who string) (end func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[who] >= maxPolls {
		return nil, false
	}
	if p.of == nil {
		p.of = map[string]int{}
	}
	p.of[who]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.of[who]--; p.of[who] == 0 {
			delete(p.of, who)
		}
	}, true
}

// await waits for a message, as long as the receiver is there. It reports whether the queue
// is another one by then, or has another policy or other tags: the receiver gets nothing, and is judged by these when it
// asks again.
func (q *Queues) await(ctx context.Context, call *awsfront.Call, found *record, wait time.Duration) (changed bool, err error) {
	end, ok := q.polls.begin(call.Caller.Principal().String())
	if !ok {
		return false, nil
	}
	defer end()
	waits, cancel := awsfront.UntilGone(ctx)
	defer cancel()
	err = q.Store.Await(waits, found.Data.Messages, found.Data.seconds(attributeRetention), q.Now().Add(wait))
	if gone := waits.Err(); gone != nil {
		return false, gone
	}
	if err != nil {
		return false, broken(err)
	}
	now, err := queues.Get(ctx, q.Management, found.ID)
	if err != nil {
		return false, kept(err)
	}
	return now.Data.Messages != found.Data.Messages || now.Data.Policy != found.Data.Policy || !maps.Equal(now.Tags, found.Tags), nil
}
