// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
)

type resultsInput struct {
	QueryID, NextToken string
	MaxItems           *int32
}

type resultsOutput struct {
	Results                          [][]resultField
	Statistics                       *statistics
	Status, QueryLanguage, NextToken string
}

type resultField struct {
	Field string
	Value *string
}

// statistics of a query. Events that the log store filtered out are neither scanned nor matched.
type statistics struct {
	RecordsMatched, RecordsScanned, BytesScanned, LogGroupsScanned, ResultCount float64
	EstimatedRecordsSkipped, EstimatedBytesSkipped                              float64 // 0: there is no index
}

// aboutQuery is about the log groups of a query: who may not read them may not read what came of it either. A query that is not there
// has no log group.
func (q *queries) aboutQuery(ctx context.Context, call *awsfront.Call, id string) ([]awsfront.Target, error) {
	if one := q.find(call.Caller.Account(), id); one != nil {
		return q.several(ctx, call, one.groups)
	}
	return []awsfront.Target{{Resource: q.resource(call, "")}}, nil
}

// known finds a query, or says that there is none.
func (q *queries) known(call *awsfront.Call, id string) (*query, error) {
	if _, err := uuid.Parse(id); err != nil {
		return nil, awsfault.Errorf(invalidParameter, "The query ID %.100q is not one of StartQuery", id)
	}
	one := q.find(call.Caller.Account(), id)
	if one == nil {
		return nil, awsfault.Errorf(notFound, "The query with ID '%s' does not exist, or is so old that it is forgotten: start it again", id)
	}
	return one, nil
}

func (q *queries) results() awsfront.Spec[resultsInput, resultsOutput] {
	return awsfront.Spec[resultsInput, resultsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *resultsInput) ([]awsfront.Target, error) {
			return q.aboutQuery(ctx, call, in.QueryID)
		},
		Do: func(_ context.Context, call *awsfront.Call, in *resultsInput) (*resultsOutput, error) {
			one, err := q.known(call, in.QueryID)
			if err != nil {
				return nil, err
			}
			return q.shown(call, one, in)
		},
	}
}

// shown is a page of what came of a query.
func (q *queries) shown(call *awsfront.Call, one *query, in *resultsInput) (*resultsOutput, error) {
	size, err := nexttoken.LimitsOf(service, call.Action).Size(in.MaxItems)
	if err != nil {
		return nil, err
	}
	scope := nexttoken.Scope{Account: one.account, Service: service, Action: call.Action, Parameters: one.id}
	text, err := q.Pages.Open(scope, in.NextToken)
	if err != nil {
		return nil, err
	}
	from := 0
	if text != "" {
		if from, err = strconv.Atoi(text); err != nil {
			return nil, fmt.Errorf("reading a token that was sealed here: %w", err)
		}
	}
	out := &resultsOutput{Results: [][]resultField{}, Status: one.status, QueryLanguage: language, Statistics: &statistics{LogGroupsScanned: float64(len(one.groups))}}
	if one.result == nil {
		return out, nil
	}
	out.Statistics.RecordsMatched, out.Statistics.RecordsScanned = float64(one.result.Matched), float64(one.result.Scanned)
	out.Statistics.BytesScanned, out.Statistics.ResultCount = float64(one.result.Bytes), float64(len(one.result.Rows))
	rows := one.result.Rows[min(from, len(one.result.Rows)):]
	if len(rows) > size {
		rows = rows[:size]
		if out.NextToken, err = q.Pages.Seal(scope, strconv.Itoa(from+size)); err != nil {
			return nil, err
		}
	}
	for _, row := range rows {
		fields := make([]resultField, len(row))
		for i, field := range row {
			fields[i] = resultField{Field: field.Name, Value: &field.Value}
		}
		out.Results = append(out.Results, fields)
	}
	return out, nil
}

type stopInput struct{ QueryID string }

type stopOutput struct{ Success bool }

func (q *queries) stop() awsfront.Spec[stopInput, stopOutput] {
	return awsfront.Spec[stopInput, stopOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *stopInput) ([]awsfront.Target, error) {
			return q.aboutQuery(ctx, call, in.QueryID)
		},
		Do: func(_ context.Context, call *awsfront.Call, in *stopInput) (*stopOutput, error) {
			one, err := q.known(call, in.QueryID)
			if err != nil {
				return nil, err
			}
			if !q.cancel(one.id) {
				return nil, awsfault.Errorf(invalidParameter, "The query with ID '%s' is not running: it has ended", one.id)
			}
			return &stopOutput{true}, nil
		},
	}
}

type queriesInput struct {
	LogGroupName, Status, QueryLanguage, NextToken string
	MaxResults                                     *int32
}

type queriesOutput struct {
	Queries   []queryInfo
	NextToken string
}

// queryInfo is a query as it is listed. It was made at a time in milliseconds since 1970, and took so many milliseconds.
type queryInfo struct {
	QueryID, QueryString, Status, LogGroupName, QueryLanguage, UserIdentity string
	CreateTime                                                              int64
	QueryDuration                                                           *int64
	BytesScanned                                                            *float64
}

func (q *queries) describe() awsfront.Spec[queriesInput, queriesOutput] {
	return awsfront.Spec[queriesInput, queriesOutput]{Do: q.doDescribe}
}

func (q *queries) doDescribe(_ context.Context, call *awsfront.Call, in *queriesInput) (*queriesOutput, error) {
	if in.Status != "" && !slices.Contains([]string{scheduled, running, complete, failed, cancelled, timedOut, "Unknown"}, in.Status) {
		return nil, awsfault.Errorf(invalidParameter, "status %.40q is not one of a query", in.Status)
	}
	all := q.list(call.Caller.Account())
	all = slices.DeleteFunc(all, func(one query) bool {
		return in.Status != "" && one.status != in.Status || in.LogGroupName != "" && !slices.Contains(one.groups, in.LogGroupName) || in.QueryLanguage != "" && in.QueryLanguage != language
	})
	page, next, err := awsresource.Page(q.Account, call, []any{in.Status, in.LogGroupName, in.QueryLanguage}, all, func(one query) string {
		return nexttoken.NewestFirst(one.created, one.id)
	}, in.MaxResults, in.NextToken)
	out := &queriesOutput{Queries: []queryInfo{}, NextToken: next}
	for _, one := range page {
		info := queryInfo{
			QueryID: one.id, QueryString: one.text, Status: one.status, LogGroupName: one.groups[0], QueryLanguage: language, UserIdentity: one.user, CreateTime: one.created.UnixMilli(),
		}
		if one.ended() {
			took := one.took.Milliseconds()
			info.QueryDuration = &took
		}
		if one.result != nil {
			bytes := float64(one.result.Bytes)
			info.BytesScanned = &bytes
		}
		out.Queries = append(out.Queries, info)
	}
	return out, err
}
