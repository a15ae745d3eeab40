// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/plane/logquery"
)

const (
	// language is the one of CloudWatch Logs Insights.
	language = "CWLI"
	// malformed is the code of a query that cannot be read.
	malformed = "MalformedQueryException"
)

type startInput struct {
	LogGroupName                       string
	LogGroupNames, LogGroupIdentifiers []string
	QueryString, QueryLanguage         string
	StartTime, EndTime                 int64 // in seconds since 1970; both belong to the range
	Limit                              *int32
}

type startOutput struct{ QueryID string }

// groupsOf lists the log groups of a query.
func (q *queries) groupsOf(call *awsfront.Call, in *startInput) ([]string, error) {
	ways := 0
	var names []string
	if in.LogGroupName != "" {
		ways++
		names = []string{in.LogGroupName}
	}
	if len(in.LogGroupNames) > 0 {
		ways++
		names = in.LogGroupNames
	}
	if len(in.LogGroupIdentifiers) > 0 {
		ways++
		for _, text := range in.LogGroupIdentifiers {
			name, err := q.identified(call, text)
			if err != nil {
				return nil, err
			}
			names = append(names, name)
		}
	}
	if ways != 1 {
		return nil, awsfault.Errorf(invalidParameter, "Exactly one of logGroupName, logGroupNames and logGroupIdentifiers must be there")
	}
	if n := len(names); n > mostIdentifiers {
		return nil, awsfault.Errorf(invalidParameter, "A query can have %d log groups, and %d are named", mostIdentifiers, n)
	}
	return names, nil
}

// several is about several log groups.
func (a *api) several(ctx context.Context, call *awsfront.Call, names []string) (targets []awsfront.Target, err error) {
	for _, name := range names {
		found, err := a.named(ctx, call, name)
		if err != nil {
			return nil, err
		}
		targets = append(targets, found...)
	}
	return targets, nil
}

func (q *queries) start() awsfront.Spec[startInput, startOutput] {
	return awsfront.Spec[startInput, startOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *startInput) ([]awsfront.Target, error) {
			names, err := q.groupsOf(call, in)
			if err != nil {
				return nil, err
			}
			return q.several(ctx, call, names)
		},
		Do: q.doStart,
	}
}

func (q *queries) doStart(ctx context.Context, call *awsfront.Call, in *startInput) (*startOutput, error) {
	names, err := q.groupsOf(call, in)
	if err != nil {
		return nil, err
	}
	read, err := readQuery(in)
	if err != nil {
		return nil, err
	}
	question := logquery.Question{
		Query: read, Now: call.Now, Start: time.Unix(in.StartTime, 0).UTC(), End: time.Unix(in.EndTime, 0).Add(time.Second - 1).UTC(),
	}
	if in.Limit != nil {
		question.Limit = int(*in.Limit)
	}
	for _, name := range names {
		found, err := q.api.find(ctx, name)
		if fault, refused := errors.AsType[*awsfault.Error](err); refused && fault.Code == notFound {
			return nil, awsfault.Errorf(notFound, "Log group '%s' does not exist for account ID '%s'", name, call.Caller.Account())
		}
		if err != nil {
			return nil, err
		}
		if days := found.Data.Retention; days > 0 && question.End.Before(call.Now.AddDate(0, 0, -int(days))) {
			return nil, awsfault.Errorf(malformed, "end date and time is either before the log groups creation time or exceeds the log groups log retention settings")
		}
		question.Logs = append(question.Logs, logOf(call, name))
	}
	one := &query{
		id: call.ID, account: call.Caller.Account(), user: call.Caller.ARN().String(), text: in.QueryString, groups: names, question: question, created: call.Now, status: scheduled,
	}
	if !q.add(one) {
		return nil, awsfault.Errorf("LimitExceededException", "Account maximum query concurrency limit of [%d] reached: wait until others have ended", mostScheduled+atOnce)
	}
	return &startOutput{one.id}, nil
}

// readQuery checks what a request asks, and reads the query.
func readQuery(in *startInput) (*logsinsights.Query, error) {
	if n := utf8.RuneCountInString(in.QueryString); n > logsinsights.MaxQuery {
		return nil, awsfault.Errorf(invalidParameter, "1 validation error detected: Value at 'queryString' failed to satisfy constraint: Member must have length less than or equal to %d, and has %d", logsinsights.MaxQuery, n)
	}
	if in.QueryLanguage != "" && in.QueryLanguage != language {
		return nil, awsfault.Errorf(invalidParameter, "queryLanguage %.40q is not answered here: queries are in the language of CloudWatch Logs Insights, %s", in.QueryLanguage, language)
	}
	const last = 253402300799 // of the year 9999
	if in.StartTime < 0 || in.EndTime < in.StartTime || in.EndTime > last {
		return nil, awsfault.Errorf(invalidParameter, "The time range from %d to %d is not valid: startTime and endTime are in seconds since 1970, and endTime is not before startTime", in.StartTime, in.EndTime)
	}
	if in.Limit != nil && (*in.Limit < 1 || *in.Limit > logsinsights.MaxRows) {
		return nil, awsfault.Errorf(invalidParameter, "1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value from 1 to %d", *in.Limit, logsinsights.MaxRows)
	}
	read, err := logsinsights.Parse(in.QueryString)
	if at, found := logsinsights.AsSyntaxError(err); found {
		return nil, &awsfault.Error{Code: malformed, Message: at.Error(), Members: map[string]any{"queryCompileError": awsshape.Object{
			"message": at.Message, "location": awsshape.Object{"startCharOffset": int64(at.Start), "endCharOffset": int64(at.End)},
		}}}
	}
	if err != nil {
		return nil, &awsfault.Error{Code: malformed, Message: err.Error(), Cause: err}
	}
	return read, nil
}
