// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/aws/logsinsights/evaluation"
	"muster.dev/muster/internal/plane/logquery"
)

const (
	// atOnce is how many queries run at once: each takes up to 64 MiB.
	atOnce = 2
	// mostScheduled is how many queries wait for others.
	mostScheduled = 30
	// mostQueries and mostBytes bound what is remembered of queries; the queries that ended first are forgotten first.
	mostQueries = 1000
	mostBytes   = 64 << 20
	// queryTime is how long a query may run.
	queryTime = time.Minute
)

// The statuses of a query.
const (
	scheduled = "Scheduled"
	running   = "Running"
	complete  = "Complete"
	failed    = "Failed"
	cancelled = "Cancelled"
	timedOut  = "Timeout"
)

// query is a query that somebody started.
type query struct {
	id, account, user, text string
	groups                  []string
	question                logquery.Question
	created                 time.Time

	// The fields below change with the query, by the lock of queries.
	status string
	stop   context.CancelFunc // while it runs
	began  time.Time
	took   time.Duration
	result *evaluation.Result
	bytes  int
}

func (q *query) ended() bool { return q.status != scheduled && q.status != running }

// queries has the actions about queries, and the queries themselves, which are in memory only: a service that starts again knows
// none.
type queries struct {
	*api
	wake chan struct{} // has an element at least for each query that waits

	mu      sync.Mutex
	all     []*query // the newest last
	waiting []*query // of all, the next one first
	bytes   int      // of all results, about
}

func newQueries(a *api) *queries {
	return &queries{api: a, wake: make(chan struct{}, atOnce+mostScheduled)}
}

// add schedules a query; false if too many have not ended.
func (q *queries) add(one *query) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	under := 0
	for _, other := range q.all {
		if !other.ended() { // a query that was stopped has left its place, whether or not the next one has it yet
			under++
		}
	}
	if under >= atOnce+mostScheduled {
		return false
	}
	q.all, q.waiting = append(q.all, one), append(q.waiting, one)
	q.forget()
	select {
	case q.wake <- struct{}{}:
	default: // it is full, and so has an element for each
	}
	return true
}

// next takes the query that waits longest; nil if none waits.
func (q *queries) next() *query {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil
	}
	one := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	return one
}

// forget drops the oldest queries that have ended, as long as all are too many or too large.
func (q *queries) forget() {
	for len(q.all) > mostQueries || q.bytes > mostBytes {
		i := slices.IndexFunc(q.all, func(one *query) bool { return one.ended() })
		if i < 0 || i == len(q.all)-1 {
			return // the last one is kept, however large it is
		}
		q.bytes -= q.all[i].bytes
		q.all = slices.Delete(q.all, i, i+1)
	}
}

// find finds a query of an account by its id, as it is now; nil if there is none.
func (q *queries) find(account, id string) *query {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, one := range q.all {
		if one.id == id && one.account == account {
			found := *one
			return &found
		}
	}
	return nil
}

// list lists the queries of an account as they are now.
func (q *queries) list(account string) (all []query) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, one := range q.all {
		if one.account == account {
			all = append(all, *one)
		}
	}
	return all
}

// cancel ends a query; false if it has ended.
func (q *queries) cancel(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.all, func(one *query) bool { return one.id == id })
	if i < 0 || q.all[i].ended() {
		return false
	}
	q.all[i].status = cancelled
	q.waiting = slices.DeleteFunc(q.waiting, func(one *query) bool { return one.id == id })
	if q.all[i].stop != nil {
		q.all[i].stop()
	}
	return true
}

// work runs one query after another until the context ends.
func (q *queries) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.wake:
			if one := q.next(); one != nil {
				q.run(ctx, one)
			}
		}
	}
}

func (q *queries) run(ctx context.Context, one *query) {
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	if !q.begin(one, cancel) {
		return
	}
	result, err := one.question.Answer(ctx, q.kept())
	status := complete
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		status = timedOut
	case err != nil:
		status = failed
	}
	if q.end(one, status, result) && err != nil {
		q.Log.WarnContext(ctx, "a query of logs has failed", "query", one.id, "error", err)
	}
}

// begin marks a query as one that runs; false if it was cancelled meanwhile.
func (q *queries) begin(one *query, stop context.CancelFunc) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if one.status != scheduled {
		return false
	}
	one.status, one.stop, one.began = running, stop, time.Now()
	return true
}

// end keeps what came of a query; false if it was cancelled meanwhile.
func (q *queries) end(one *query, status string, result *evaluation.Result) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	one.took, one.stop = time.Since(one.began), nil
	if one.status == cancelled {
		return false
	}
	one.status, one.result = status, result
	if result != nil {
		one.bytes = sizeOf(result)
		q.bytes += one.bytes
	}
	q.forget()
	return true
}

// sizeOf is about how much memory a result takes, in bytes.
func sizeOf(result *evaluation.Result) (bytes int) {
	const perField = 32 // two strings
	for _, row := range result.Rows {
		for _, field := range row {
			bytes += perField + len(field.Name) + len(field.Value)
		}
	}
	return bytes
}
