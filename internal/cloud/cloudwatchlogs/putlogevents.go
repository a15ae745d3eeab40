// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"
	"time"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/plane/logevent"
	"muster.dev/muster/internal/plane/logstore"
	"muster.dev/muster/internal/platform/lru"
)

// The limits of a batch, of CloudWatch Logs but for the last: an event has 1 MiB there.
const (
	mostEvents = 10_000
	batchBytes = 1 << 20
	eventBytes = 26 // that each event counts besides its message
	batchSpan  = 24 * time.Hour
	tooOld     = 14 * 24 * time.Hour
	tooNew     = 2 * time.Hour
	mostText   = logevent.MaxText
)

// mostAnswered is how many batches are remembered as answered.
const mostAnswered = 4096

// puts has the action that takes events.
//
// A batch is known by its stream and its events. Events that come again after an error, as SDKs send them, are the same batch, and
// kept once; events that come again after an answer are another batch, as on AWS.
type puts struct {
	streams
	mu       sync.Mutex
	answered *lru.Map[string, int] // how often a batch was answered
}

type putInput struct {
	LogGroupName, LogStreamName string
	LogEvents                   []put
	SequenceToken               string // it does nothing, as on AWS
}

// put is an event. Its time is in milliseconds since 1970.
type put struct {
	Timestamp int64
	Message   string
}

type putOutput struct {
	NextSequenceToken     string
	RejectedLogEventsInfo *rejected
}

// rejected says which events of a batch are not kept, by their index: those before the ends, and those from the start on.
type rejected struct {
	TooNewLogEventStartIndex, TooOldLogEventEndIndex, ExpiredLogEventEndIndex *int32
}

func (p *puts) put() awsfront.Spec[putInput, putOutput] {
	return awsfront.Spec[putInput, putOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *putInput) ([]awsfront.Target, error) {
			return p.stream(ctx, call, in.LogGroupName, in.LogStreamName)
		},
		Do: p.doPut,
	}
}

func (p *puts) doPut(ctx context.Context, call *awsfront.Call, in *putInput) (*putOutput, error) {
	if err := checkBatch(in.LogEvents); err != nil {
		return nil, err
	}
	group, err := p.find(ctx, in.LogGroupName)
	if err != nil {
		return nil, err
	}
	if err := p.require(ctx, call, in.LogGroupName, in.LogStreamName); err != nil {
		return nil, err
	}
	from, to, info := taken(in.LogEvents, call.Now, group.Data.Retention)
	events := in.LogEvents[from:to]
	out := &putOutput{RejectedLogEventsInfo: info}
	if len(events) == 0 {
		return out, nil
	}
	if err := checkSpan(events); err != nil {
		return nil, err
	}
	if err := p.Logs.Ready(); err != nil {
		return nil, &awsfault.Error{Code: unavailable, Message: "Log events cannot be kept: " + err.Error(), Cause: err}
	}
	if err := awsfront.StillAllowed(ctx); err != nil {
		return nil, err
	}
	batch, done := p.batch(logOf(call, in.LogGroupName), in.LogStreamName, events)
	if err := p.Logs.Write(ctx, batch); err != nil {
		return nil, unanswered(err)
	}
	done()
	out.NextSequenceToken = batch.File
	return out, nil
}

// checkBatch refuses a request that CloudWatch Logs refuses whole.
func checkBatch(events []put) error {
	if n := len(events); n < 1 || n > mostEvents {
		return awsfault.Errorf(invalidParameter, "1 validation error detected: Value at 'logEvents' failed to satisfy constraint: Member must have length from 1 to %d, and has %d", mostEvents, n)
	}
	bytes := 0
	for i, event := range events {
		switch n := len(event.Message); {
		case n == 0:
			return awsfault.Errorf(invalidParameter, "1 validation error detected: Value '' at 'logEvents.%d.member.message' failed to satisfy constraint: Member must have length greater than or equal to 1", i+1)
		case n > mostText:
			return awsfault.Errorf(invalidParameter, "Log event too large: %d bytes exceeds limit of %d", n, mostText)
		case event.Timestamp < 0:
			return awsfault.Errorf(invalidParameter, "1 validation error detected: Value '%d' at 'logEvents.%d.member.timestamp' failed to satisfy constraint: Member must have value greater than or equal to 0", event.Timestamp, i+1)
		case i > 0 && event.Timestamp < events[i-1].Timestamp:
			return awsfault.Errorf(invalidParameter, "Log events in a single PutLogEvents request must be in chronological order.")
		default:
			bytes += n + eventBytes
		}
	}
	if bytes > batchBytes {
		return awsfault.Errorf(invalidParameter, "Upload too large: %d bytes exceeds limit of %d", bytes, batchBytes)
	}
	return nil
}

func checkSpan(events []put) error {
	if events[len(events)-1].Timestamp-events[0].Timestamp > batchSpan.Milliseconds() {
		return awsfault.Errorf(invalidParameter, "The batch of log events in a single PutLogEvents request cannot span more than 24 hours.")
	}
	return nil
}

// taken are the events from one index up to, not including, another: those that are neither too old nor too new. Retention is in
// days, 0 for none.
func taken(events []put, now time.Time, retention int32) (from, to int, info *rejected) {
	old, expired := 0, 0
	to = len(events)
	for i, event := range events {
		at := time.UnixMilli(event.Timestamp)
		switch {
		case at.After(now.Add(tooNew)):
			to = min(to, i)
		case retention > 0 && at.Before(now.AddDate(0, 0, -int(retention))):
			expired = i + 1
			if at.Before(now.Add(-tooOld)) {
				old = i + 1
			}
		case at.Before(now.Add(-tooOld)):
			old = i + 1
		}
	}
	index := func(i int) *int32 { n := int32(i); return &n } //nolint:gosec // G115: at most mostEvents
	info = &rejected{}
	if old > 0 {
		info.TooOldLogEventEndIndex = index(old)
	}
	if expired > 0 {
		info.ExpiredLogEventEndIndex = index(expired)
	}
	if to < len(events) {
		info.TooNewLogEventStartIndex = index(to)
	}
	if *info == (rejected{}) {
		info = nil
	}
	return min(max(old, expired), to), to, info
}

// batch makes rows of events. Done is called once the batch is answered.
func (p *puts) batch(log, stream string, events []put) (b logstore.Batch, done func()) {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%d %s %d %s\n", len(log), log, len(stream), stream) // a hash takes everything
	for _, event := range events {
		_, _ = fmt.Fprintf(sum, "%d %d %s\n", event.Timestamp, len(event.Message), event.Message)
	}
	content := string(sum.Sum(nil))
	p.mu.Lock()
	times, _ := p.answered.Get(content)
	p.mu.Unlock()
	whole := sha256.Sum256([]byte(content + strconv.Itoa(times)))
	b = logstore.Batch{File: hex.EncodeToString(whole[:16]), First: time.UnixMilli(events[0].Timestamp), Last: time.UnixMilli(events[len(events)-1].Timestamp)}
	for i, event := range events {
		b.Rows = append(b.Rows, logevent.Event{
			Log: log, Stream: stream, File: b.File, Offset: int64(i), Time: time.UnixMilli(event.Timestamp), Text: []byte(event.Message),
		}.Append(nil))
	}
	return b, func() {
		p.mu.Lock()
		p.answered.Put(content, times+1)
		p.mu.Unlock()
	}
}
