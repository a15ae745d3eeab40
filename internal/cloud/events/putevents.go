// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eventpattern"
)

const (
	maxEntries = 10
	// maxEntry is how many bytes an event may have, as EventBridge's.
	maxEntry = 256 << 10
	// reserved begins the sources of the account's own events.
	reserved = "aws."
)

type putEventsInput struct{ Entries []entry }

type entry struct {
	Source, DetailType, Detail, EventBusName string
	Resources                                []string
	Time                                     *time.Time
}

type putEventsOutput struct {
	FailedEntryCount int32
	Entries          []entryDone
}

type entryDone struct{ EventID, ErrorCode, ErrorMessage string }

func (b *Bus) putEvents() awsfront.Spec[putEventsInput, putEventsOutput] {
	return awsfront.Spec[putEventsInput, putEventsOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *putEventsInput) ([]awsfront.Target, error) {
			t := awsfront.Target{Resource: b.ARN(call, "event-bus/"+defaultBus), Conditions: map[string][]string{}}
			for _, e := range in.Entries {
				if err := b.checkBus(call, e.EventBusName); err != nil {
					return nil, err
				}
				t.Conditions["events:source"] = append(t.Conditions["events:source"], e.Source)
			}
			return []awsfront.Target{t}, nil
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *putEventsInput) (*putEventsOutput, error) {
			if n := len(in.Entries); n == 0 || n > maxEntries {
				return nil, awsfault.Errorf(validation, "1 validation error detected: Value at 'entries' failed to satisfy constraint: Member must have length from 1 to %d: it has %d", maxEntries, n)
			}
			out := &putEventsOutput{Entries: []entryDone{}}
			for _, e := range in.Entries {
				done := b.put(ctx, call, e)
				if done.ErrorCode != "" {
					out.FailedEntryCount++
				}
				out.Entries = append(out.Entries, done)
			}
			return out, nil
		},
	}
}

// put sends the event of one entry.
func (b *Bus) put(ctx context.Context, call *awsfront.Call, e entry) entryDone {
	var detail map[string]any
	switch err := json.Unmarshal([]byte(e.Detail), &detail); {
	case e.Source == "" || e.DetailType == "" || e.Detail == "":
		return entryDone{ErrorCode: "InvalidArgument", ErrorMessage: "Parameter Source, DetailType or Detail is not valid. Reason: they are required arguments."}
	case strings.HasPrefix(e.Source, reserved):
		return entryDone{ErrorCode: "NotAuthorizedForSourceException", ErrorMessage: "Not authorized for the source. Sources that begin with " + reserved + " are the account's own."}
	case err != nil || detail == nil:
		return entryDone{ErrorCode: "MalformedDetail", ErrorMessage: "Detail is malformed. It must be a JSON object."}
	case len(e.Detail)+len(e.Source)+len(e.DetailType) > maxEntry:
		return entryDone{ErrorCode: "InvalidArgument", ErrorMessage: "Total size of the entry is greater than 262144 bytes."}
	}
	at := call.Now
	if e.Time != nil {
		at = *e.Time
	}
	id, err := b.send(ctx, call.Caller.Account(), Event{Source: e.Source, DetailType: e.DetailType, Time: at, Resources: e.Resources, Detail: json.RawMessage(e.Detail)})
	switch {
	case errors.Is(err, errMalformed):
		return entryDone{ErrorCode: "MalformedDetail", ErrorMessage: fmt.Sprintf("Detail is malformed: %.200v.", err)}
	case errors.Is(err, eventpattern.ErrWork):
		return entryDone{ErrorCode: "InvalidArgument", ErrorMessage: "The event has too many values to be compared with the patterns of all rules: send fewer in one event."}
	case err != nil:
		b.Log.Error("an event was not sent to all queues", "source", e.Source, "error", err)
		return entryDone{ErrorCode: "InternalException", ErrorMessage: "The event was not sent to all targets; the log of the service says why. Send it again."}
	}
	return entryDone{EventID: id}
}

type testPatternInput struct{ EventPattern, Event string }

type testPatternOutput struct{ Result bool }

func (b *Bus) testPattern() awsfront.Spec[testPatternInput, testPatternOutput] {
	return awsfront.Spec[testPatternInput, testPatternOutput]{
		Do: func(_ context.Context, _ *awsfront.Call, in *testPatternInput) (*testPatternOutput, error) {
			pattern, err := eventpattern.Parse(in.EventPattern)
			if err != nil {
				return nil, awsfault.Errorf(invalidPattern, "Event pattern is not valid. Reason: %v", err)
			}
			event, err := eventpattern.ReadEvent([]byte(in.Event))
			if err != nil {
				return nil, awsfault.Errorf(validation, "Parameter Event is not valid. Reason: %v", err)
			}
			matches, err := pattern.Match(event)
			if err != nil {
				return nil, awsfault.Errorf(validation, "Parameter Event is not valid. Reason: %v", err)
			}
			return &testPatternOutput{matches}, nil
		},
	}
}
