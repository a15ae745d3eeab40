// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/filterpattern"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/plane/logquery"
)

const (
	// pageBytes bounds the messages of a page.
	pageBytes = 1 << 20
	// mostStreams is how many log streams FilterLogEvents can name.
	mostStreams = 100
	// later is how far in the future an event can be, and more.
	later = 48 * time.Hour
)

// events has the actions that read events.
type events struct{ streams }

type filterInput struct {
	LogGroupName, LogGroupIdentifier string
	LogStreamNames                   []string
	LogStreamNamePrefix              *string
	StartTime, EndTime               *int64
	FilterPattern                    string
	Interleaved                      *bool // it does nothing, as on AWS
	StartFromHead                    *bool
	NextToken                        string
	Limit                            *int32
}

type filterOutput struct {
	Events             []filtered
	SearchedLogStreams []struct{} // always empty, as on AWS
	NextToken          string
}

// filtered is an event of FilterLogEvents. Times are in milliseconds since 1970.
type filtered struct {
	EventID, LogStreamName, Message string
	Timestamp, IngestionTime        int64
}

// spanned is the range of times of a request, in milliseconds since 1970; all of the last one belongs to it if whole. Programs send
// the largest number that they have for no end: the range ends where events can be.
func spanned(now time.Time, start, end *int64, whole bool) (from, to time.Time, err error) {
	from, to = time.Unix(0, 0), now.Add(later)
	if start != nil {
		from = time.UnixMilli(*start)
	}
	if end != nil {
		if to = time.UnixMilli(*end); whole {
			to = to.Add(time.Millisecond)
		}
		to = to.Add(-1)
	}
	for name, at := range map[string]*int64{"startTime": start, "endTime": end} {
		if at != nil && *at < 0 {
			return from, to, awsfault.Errorf(invalidParameter, "1 validation error detected: Value '%d' at '%s' failed to satisfy constraint: Member must have value greater than or equal to 0", *at, name)
		}
	}
	if start != nil && end != nil && *start > *end {
		return from, to, awsfault.Errorf(invalidParameter, "The time range is not valid: startTime %d is after endTime %d", *start, *end)
	}
	most := now.Add(later)
	if from.After(most) {
		from = most
	}
	if to.After(most) {
		to = most
	}
	return from.UTC(), to.UTC(), nil
}

func (e events) filter() awsfront.Spec[filterInput, filterOutput] {
	return awsfront.Spec[filterInput, filterOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *filterInput) ([]awsfront.Target, error) {
			group, err := e.oneGroup(call, in.LogGroupName, in.LogGroupIdentifier)
			if err != nil {
				return nil, err
			}
			return e.named(ctx, call, group)
		},
		Do: e.doFilter,
	}
}

func (e events) doFilter(ctx context.Context, call *awsfront.Call, in *filterInput) (*filterOutput, error) {
	group, err := e.oneGroup(call, in.LogGroupName, in.LogGroupIdentifier)
	if err != nil {
		return nil, err
	}
	page, err := e.wanted(call, group, in)
	if err != nil {
		return nil, err
	}
	scope := nexttoken.Scope{Account: call.Caller.Account(), Service: service, Action: call.Action, Parameters: []any{group, in.LogStreamNames, in.LogStreamNamePrefix, in.FilterPattern, in.StartTime, in.EndTime}}
	page.Latest = in.StartFromHead != nil && !*in.StartFromHead
	if _, err := e.follow(scope, in.NextToken, &page); err != nil {
		return nil, err
	}
	if _, err := e.find(ctx, group); err != nil {
		return nil, err
	}
	for _, name := range in.LogStreamNames {
		if err := e.require(ctx, call, group, name); err != nil {
			return nil, err
		}
	}
	found, err := page.Read(ctx, e.kept())
	if err != nil {
		return nil, unanswered(err)
	}
	out := &filterOutput{Events: []filtered{}, SearchedLogStreams: []struct{}{}}
	for _, event := range found.Events {
		at := event.Time.UnixMilli()
		out.Events = append(out.Events, filtered{EventID: event.Pointer(), LogStreamName: event.Stream, Message: event.Message, Timestamp: at, IngestionTime: at})
	}
	if !found.Done && found.Last != nil {
		out.NextToken, err = e.token(scope, page.Latest, *found.Last)
	}
	return out, err
}

// wanted is what a request of FilterLogEvents asks for.
func (e events) wanted(call *awsfront.Call, group string, in *filterInput) (logquery.Page, error) {
	size, err := nexttoken.LimitsOf(service, call.Action).Size(in.Limit)
	if err != nil {
		return logquery.Page{}, err
	}
	page := logquery.Page{Log: logOf(call, group), Streams: in.LogStreamNames, Limit: size, Bytes: pageBytes}
	if page.Start, page.End, err = spanned(call.Now, in.StartTime, in.EndTime, true); err != nil {
		return page, err
	}
	if n := len(in.LogStreamNames); n > mostStreams {
		return page, awsfault.Errorf(invalidParameter, "logStreamNames has %d members: there may be %d", n, mostStreams)
	}
	for _, name := range in.LogStreamNames {
		if err := checkStream(name); err != nil {
			return page, err
		}
	}
	if err := checkPrefix(in.LogStreamNamePrefix); err != nil {
		return page, err
	}
	if in.LogStreamNamePrefix != nil {
		if len(in.LogStreamNames) > 0 {
			return page, awsfault.Errorf(invalidParameter, "logStreamNamePrefix and logStreamNames are mutually exclusive parameters: send one of them")
		}
		page.Prefix = *in.LogStreamNamePrefix
	}
	pattern, err := filterpattern.Parse(in.FilterPattern)
	if err != nil {
		return page, &awsfault.Error{Code: invalidParameter, Message: "Invalid filter pattern: " + err.Error(), Cause: err}
	}
	if !pattern.All() {
		page.Contains, page.Matches = pattern.Contains(), pattern.Matches
	}
	return page, nil
}

// The beginnings of tokens: where a page goes from its place.
const (
	forward  = "f/"
	backward = "b/"
)

func (e events) token(scope nexttoken.Scope, latest bool, place logquery.Place) (string, error) {
	way := forward
	if latest {
		way = backward
	}
	return e.Pages.Seal(scope, way+place.String())
}

// follow has a page begin where a token says, in its direction. Followed is the place; nil without a token.
func (e events) follow(scope nexttoken.Scope, token string, page *logquery.Page) (followed *logquery.Place, err error) {
	text, err := e.Pages.Open(scope, token)
	if err != nil || text == "" {
		return nil, err
	}
	place, err := logquery.ParsePlace(text[len(forward):])
	if err != nil {
		return nil, fmt.Errorf("reading a token that was sealed here: %w", err)
	}
	page.After, page.Latest = &place, strings.HasPrefix(text, backward)
	return &place, nil
}

type getInput struct {
	LogGroupName, LogGroupIdentifier, LogStreamName string
	StartTime, EndTime                              *int64
	StartFromHead                                   *bool
	NextToken                                       string
	Limit                                           *int32
}

type getOutput struct {
	Events                              []got
	NextForwardToken, NextBackwardToken string
}

// got is an event of GetLogEvents. Times are in milliseconds since 1970.
type got struct {
	Message                  string
	Timestamp, IngestionTime int64
}

func (e events) get() awsfront.Spec[getInput, getOutput] {
	return awsfront.Spec[getInput, getOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *getInput) ([]awsfront.Target, error) {
			group, err := e.oneGroup(call, in.LogGroupName, in.LogGroupIdentifier)
			if err != nil {
				return nil, err
			}
			return e.stream(ctx, call, group, in.LogStreamName)
		},
		Do: e.doGet,
	}
}

func (e events) doGet(ctx context.Context, call *awsfront.Call, in *getInput) (*getOutput, error) {
	group, err := e.oneGroup(call, in.LogGroupName, in.LogGroupIdentifier)
	if err != nil {
		return nil, err
	}
	page := logquery.Page{Log: logOf(call, group), Streams: []string{in.LogStreamName}, Bytes: pageBytes, Latest: in.StartFromHead == nil || !*in.StartFromHead}
	if page.Limit, err = nexttoken.LimitsOf(service, call.Action).Size(in.Limit); err != nil {
		return nil, err
	}
	if page.Start, page.End, err = spanned(call.Now, in.StartTime, in.EndTime, false); err != nil {
		return nil, err
	}
	scope := nexttoken.Scope{Account: call.Caller.Account(), Service: service, Action: call.Action, Parameters: []any{group, in.LogStreamName}}
	place, err := e.follow(scope, in.NextToken, &page)
	if err != nil {
		return nil, err
	}
	if err := e.require(ctx, call, group, in.LogStreamName); err != nil {
		return nil, err
	}
	found, err := page.Read(ctx, e.kept())
	if err != nil {
		return nil, unanswered(err)
	}
	if page.Latest {
		slices.Reverse(found.Events)
	}
	return e.answered(scope, page, place, found.Events)
}

// answered makes the answer with its two tokens, which are behind its last event and before its first. At the end of the stream
// that is the place of the token that was sent, and so it is the same token, by which clients see the end.
func (e events) answered(scope nexttoken.Scope, page logquery.Page, place *logquery.Place, found []logquery.Event) (*getOutput, error) {
	out := &getOutput{Events: []got{}}
	for _, event := range found {
		at := event.Time.UnixMilli()
		out.Events = append(out.Events, got{Message: event.Message, Timestamp: at, IngestionTime: at})
	}
	first, last := logquery.Place{Time: page.End.Add(1)}, logquery.Place{Time: page.Start}
	switch {
	case len(found) > 0:
		first, last = found[0].Place, found[len(found)-1].Place
	case place != nil:
		first, last = *place, *place
		// The token of the other direction has the event whose place that is: offsets are whole numbers.
		if page.Latest {
			last.Offset--
		} else {
			first.Offset++
		}
	}
	var err error
	if out.NextForwardToken, err = e.token(scope, false, last); err != nil {
		return nil, err
	}
	if out.NextBackwardToken, err = e.token(scope, true, first); err != nil {
		return nil, err
	}
	return out, nil
}
