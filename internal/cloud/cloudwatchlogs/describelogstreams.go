// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/plane/logquery"
)

// byTime is the order of log streams by their last event.
const byTime = "LastEventTime"

type describeStreamsInput struct {
	LogGroupName, LogGroupIdentifier string
	LogStreamNamePrefix              *string
	OrderBy                          string
	Descending                       *bool
	NextToken                        string
	Limit                            *int32
}

type describeStreamsOutput struct {
	LogStreams []shownStream
	NextToken  string
}

// shownStream is a log stream as it is answered. Times are in milliseconds since 1970.
type shownStream struct {
	LogStreamName, ARN                      string
	CreationTime                            int64
	FirstEventTimestamp, LastEventTimestamp *int64
	LastIngestionTime                       *int64
	StoredBytes                             int64 // 0, as on AWS
}

// oneGroup is the log group that a request names, by its name or by an identifier.
func (a *api) oneGroup(call *awsfront.Call, name, identifier string) (string, error) {
	if (name == "") == (identifier == "") {
		return "", awsfault.Errorf(invalidParameter, "Exactly one of logGroupName and logGroupIdentifier must be there")
	}
	if name != "" {
		return name, checkName(name)
	}
	return a.identified(call, identifier)
}

func (s streams) describe() awsfront.Spec[describeStreamsInput, describeStreamsOutput] {
	return awsfront.Spec[describeStreamsInput, describeStreamsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *describeStreamsInput) ([]awsfront.Target, error) {
			group, err := s.oneGroup(call, in.LogGroupName, in.LogGroupIdentifier)
			if err != nil {
				return nil, err
			}
			return s.named(ctx, call, group)
		},
		Do: s.doDescribe,
	}
}

func (s streams) doDescribe(ctx context.Context, call *awsfront.Call, in *describeStreamsInput) (*describeStreamsOutput, error) {
	group, err := s.oneGroup(call, in.LogGroupName, in.LogGroupIdentifier)
	if err != nil {
		return nil, err
	}
	if in.OrderBy != "" && in.OrderBy != byTime && in.OrderBy != "LogStreamName" {
		return nil, awsfault.Errorf(invalidParameter, "orderBy %.40q is not known: it must be LogStreamName or %s", in.OrderBy, byTime)
	}
	if in.OrderBy == byTime && in.LogStreamNamePrefix != nil {
		return nil, awsfault.Errorf(invalidParameter, "Cannot order by %s with a logStreamNamePrefix.", byTime)
	}
	if err := checkPrefix(in.LogStreamNamePrefix); err != nil {
		return nil, err
	}
	descending := in.Descending != nil && *in.Descending
	asked, err := awsresource.AskedPage(s.Account, call, []any{group, in.LogStreamNamePrefix, in.OrderBy, descending}, in.Limit, in.NextToken)
	if err != nil {
		return nil, err
	}
	if _, err := s.find(ctx, group); err != nil {
		return nil, err
	}
	all, err := s.all(ctx, call, group, in.LogStreamNamePrefix)
	if err != nil {
		return nil, err
	}
	page, next, err := awsresource.Cut(asked, all, func(s shownStream) string { return orderOf(s, in.OrderBy, descending) })
	return &describeStreamsOutput{page, next}, err
}

// orderOf is a key whose order is that of the log streams.
func orderOf(s shownStream, by string, descending bool) string {
	key := s.LogStreamName
	if by == byTime {
		var at int64
		if s.LastEventTimestamp != nil {
			at = *s.LastEventTimestamp
		}
		key = fmt.Sprintf("%020d/%s", at, s.LogStreamName)
	}
	if !descending {
		return key
	}
	turned := make([]byte, len(key)+1)
	for i := range len(key) {
		turned[i] = ^key[i]
	}
	turned[len(key)] = 0xff // a name that begins with another one is before it
	return string(turned)
}

// all are the log streams of a log group: those that somebody made, and those that have events.
func (s streams) all(ctx context.Context, call *awsfront.Call, group string, prefix *string) ([]shownStream, error) {
	made, err := s.made(ctx, group)
	if err != nil {
		return nil, err
	}
	having, err := logquery.Streams(ctx, s.kept(), logOf(call, group))
	if err != nil {
		return nil, unanswered(err)
	}
	found := map[string]shownStream{}
	for _, r := range made {
		found[r.Name] = shownStream{LogStreamName: r.Name, CreationTime: r.Created.UnixMilli()}
	}
	for _, h := range having {
		one := found[h.Name]
		oldest, newest := h.Oldest.UnixMilli(), h.Newest.UnixMilli()
		one.LogStreamName, one.CreationTime = h.Name, cmp.Or(one.CreationTime, oldest)
		one.FirstEventTimestamp, one.LastEventTimestamp, one.LastIngestionTime = &oldest, &newest, &newest
		found[h.Name] = one
	}
	var all []shownStream
	for name, one := range found {
		if prefix == nil || strings.HasPrefix(name, *prefix) {
			one.ARN = s.arn(call, group) + ":log-stream:" + name
			all = append(all, one)
		}
	}
	return all, nil
}
