// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	logs "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
)

const (
	liveGroup  = "/aws/eks/live/cluster"
	liveStream = "pods"
)

func logsActions() []action {
	name, stream := aws.String(liveGroup), aws.String(liveStream)
	shown := func(w *world) types.LogGroup {
		out := need(w.logs.DescribeLogGroups(w.ctx(), &logs.DescribeLogGroupsInput{LogGroupNamePrefix: name}))
		if len(out.LogGroups) != 1 {
			w.Fatalf("%d log groups", len(out.LogGroups))
		}
		return out.LogGroups[0]
	}
	arn := func(w *world) *string {
		return aws.String("arn:aws:logs:" + w.config.Region + ":" + account + ":log-group:" + *name)
	}
	tags := func(w *world, want string) {
		if got := fmt.Sprint(need(w.logs.ListTagsForResource(w.ctx(), &logs.ListTagsForResourceInput{ResourceArn: arn(w)})).Tags); got != want {
			w.Errorf("tags %s, want %s", got, want)
		}
	}
	return []action{
		{"CreateLogGroup", func(w *world) {
			need(w.logs.CreateLogGroup(w.ctx(), &logs.CreateLogGroupInput{LogGroupName: name, Tags: map[string]string{"team": "a"}}))
			_, err := w.logs.CreateLogGroup(w.ctx(), &logs.CreateLogGroupInput{LogGroupName: name})
			w.refused("ResourceAlreadyExistsException", err)
		}},
		{"DescribeLogGroups", func(w *world) {
			out := need(w.logs.DescribeLogGroups(w.ctx(), &logs.DescribeLogGroupsInput{LogGroupNamePrefix: name}))
			w.has(out, "LogGroups[].LogGroupName", "LogGroups[].Arn", "LogGroups[].LogGroupArn", "LogGroups[].LogGroupClass", "LogGroups[].CreationTime", "LogGroups[].StoredBytes", "LogGroups[].MetricFilterCount")
			if group := out.LogGroups[0]; group.RetentionInDays != nil || group.KmsKeyId != nil {
				w.Errorf("made up: %+v", group)
			}
		}},
		{"PutRetentionPolicy", func(w *world) {
			need(w.logs.PutRetentionPolicy(w.ctx(), &logs.PutRetentionPolicyInput{LogGroupName: name, RetentionInDays: aws.Int32(90)}))
			if got := aws.ToInt32(shown(w).RetentionInDays); got != 90 {
				w.Errorf("%d days", got)
			}
			_, err := w.logs.PutRetentionPolicy(w.ctx(), &logs.PutRetentionPolicyInput{LogGroupName: name, RetentionInDays: aws.Int32(2)})
			w.refused("InvalidParameterException", err)
		}},
		{"DeleteRetentionPolicy", func(w *world) {
			need(w.logs.DeleteRetentionPolicy(w.ctx(), &logs.DeleteRetentionPolicyInput{LogGroupName: name}))
			if got := shown(w).RetentionInDays; got != nil {
				w.Errorf("%d days", *got)
			}
		}},
		{"AssociateKmsKey", func(w *world) {
			_, err := w.logs.AssociateKmsKey(w.ctx(), &logs.AssociateKmsKeyInput{LogGroupName: name, KmsKeyId: aws.String("none")})
			w.refused("InvalidParameterException", err)
			key := need(w.kms.CreateKey(w.ctx(), &kms.CreateKeyInput{})).KeyMetadata
			need(w.logs.AssociateKmsKey(w.ctx(), &logs.AssociateKmsKeyInput{LogGroupName: name, KmsKeyId: key.Arn}))
			if got := aws.ToString(shown(w).KmsKeyId); got != *key.Arn {
				w.Errorf("key %s, want %s", got, *key.Arn)
			}
			need(w.kms.ScheduleKeyDeletion(w.ctx(), &kms.ScheduleKeyDeletionInput{KeyId: key.KeyId}))
		}},
		{"DisassociateKmsKey", func(w *world) {
			need(w.logs.DisassociateKmsKey(w.ctx(), &logs.DisassociateKmsKeyInput{ResourceIdentifier: arn(w)}))
			if got := shown(w).KmsKeyId; got != nil {
				w.Errorf("key %s", *got)
			}
		}},
		{"TagResource", func(w *world) {
			need(w.logs.TagResource(w.ctx(), &logs.TagResourceInput{ResourceArn: arn(w), Tags: map[string]string{"b": "2"}}))
		}},
		{"UntagResource", func(w *world) {
			need(w.logs.UntagResource(w.ctx(), &logs.UntagResourceInput{ResourceArn: arn(w), TagKeys: []string{"team"}}))
		}},
		{"ListTagsForResource", func(w *world) { tags(w, "map[b:2]") }},
		{"TagLogGroup", func(w *world) {
			need(w.logs.TagLogGroup(w.ctx(), &logs.TagLogGroupInput{LogGroupName: name, Tags: map[string]string{"c": "3"}})) //nolint:staticcheck // SA1019: old tools call it
			tags(w, "map[b:2 c:3]")
		}},
		{"UntagLogGroup", func(w *world) {
			need(w.logs.UntagLogGroup(w.ctx(), &logs.UntagLogGroupInput{LogGroupName: name, Tags: []string{"b"}})) //nolint:staticcheck // SA1019: old tools call it
		}},
		{"ListTagsLogGroup", func(w *world) {
			out := need(w.logs.ListTagsLogGroup(w.ctx(), &logs.ListTagsLogGroupInput{LogGroupName: name})) //nolint:staticcheck // SA1019: old tools call it
			if got := fmt.Sprint(out.Tags); got != "map[c:3]" {
				w.Errorf("tags %s", got)
			}
		}},
		{"CreateLogStream", func(w *world) {
			need(w.logs.CreateLogStream(w.ctx(), &logs.CreateLogStreamInput{LogGroupName: name, LogStreamName: stream}))
			_, err := w.logs.CreateLogStream(w.ctx(), &logs.CreateLogStreamInput{LogGroupName: name, LogStreamName: stream})
			w.refused("ResourceAlreadyExistsException", err)
		}},
		{"PutLogEvents", putEvents},
		{"DescribeLogStreams", func(w *world) {
			out := need(w.logs.DescribeLogStreams(w.ctx(), &logs.DescribeLogStreamsInput{LogGroupName: name}))
			w.has(out, "LogStreams[].LogStreamName", "LogStreams[].Arn", "LogStreams[].CreationTime")
			if len(out.LogStreams) != 1 || (out.LogStreams[0].LastEventTimestamp != nil) != w.keeps() {
				w.Errorf("%+v", out.LogStreams)
			}
		}},
		{"GetLogEvents", func(w *world) {
			out := need(w.logs.GetLogEvents(w.ctx(), &logs.GetLogEventsInput{LogGroupName: name, LogStreamName: stream, StartFromHead: aws.Bool(true)}))
			w.has(out, "NextForwardToken", "NextBackwardToken")
			w.messages(len(out.Events), 2)
			again := need(w.logs.GetLogEvents(w.ctx(), &logs.GetLogEventsInput{LogGroupName: name, LogStreamName: stream, StartFromHead: aws.Bool(true), NextToken: out.NextForwardToken}))
			if len(again.Events) != 0 || *again.NextForwardToken != *out.NextForwardToken {
				w.Errorf("behind the end: %d events", len(again.Events))
			}
			_, err := w.logs.GetLogEvents(w.ctx(), &logs.GetLogEventsInput{LogGroupName: name, LogStreamName: aws.String("none")})
			w.refused("ResourceNotFoundException", err)
		}},
		{"FilterLogEvents", func(w *world) {
			pages := logs.NewFilterLogEventsPaginator(w.logs, &logs.FilterLogEventsInput{LogGroupName: name, FilterPattern: aws.String(`{ $.verb = "get" }`)})
			n := 0
			for pages.HasMorePages() {
				page := need(pages.NextPage(w.ctx()))
				n += len(page.Events)
			}
			w.messages(n, 1)
			_, err := w.logs.FilterLogEvents(w.ctx(), &logs.FilterLogEventsInput{LogGroupName: name, FilterPattern: aws.String("a.b")})
			w.refused("InvalidParameterException", err)
		}},
		{"StartQuery", startQuery},
		{"GetQueryResults", queryResults},
		{"DescribeQueries", func(w *world) {
			out := need(w.logs.DescribeQueries(w.ctx(), &logs.DescribeQueriesInput{LogGroupName: name, Status: types.QueryStatusComplete}))
			w.has(out, "Queries[].QueryId", "Queries[].QueryString", "Queries[].CreateTime", "Queries[].UserIdentity", "Queries[].LogGroupName", "Queries[].QueryDuration")
		}},
		{"StopQuery", func(w *world) {
			_, err := w.logs.StopQuery(w.ctx(), &logs.StopQueryInput{QueryId: aws.String(w.notes["query"])})
			w.refused("InvalidParameterException", err) // it has ended
			_, err = w.logs.StopQuery(w.ctx(), &logs.StopQueryInput{QueryId: aws.String("12345678-1234-4234-8234-123456789012")})
			w.refused("ResourceNotFoundException", err)
		}},
		{"DeleteLogStream", func(w *world) {
			need(w.logs.DeleteLogStream(w.ctx(), &logs.DeleteLogStreamInput{LogGroupName: name, LogStreamName: stream}))
			_, err := w.logs.GetLogEvents(w.ctx(), &logs.GetLogEventsInput{LogGroupName: name, LogStreamName: stream})
			w.refused("ResourceNotFoundException", err)
		}},
		{"PutLogGroupDeletionProtection", func(w *world) {
			need(w.logs.PutLogGroupDeletionProtection(w.ctx(), &logs.PutLogGroupDeletionProtectionInput{LogGroupIdentifier: name, DeletionProtectionEnabled: aws.Bool(true)}))
			_, err := w.logs.DeleteLogGroup(w.ctx(), &logs.DeleteLogGroupInput{LogGroupName: name})
			w.refused("ValidationException", err)
			need(w.logs.PutLogGroupDeletionProtection(w.ctx(), &logs.PutLogGroupDeletionProtectionInput{LogGroupIdentifier: name, DeletionProtectionEnabled: aws.Bool(false)}))
		}},
		{"DeleteLogGroup", func(w *world) {
			need(w.logs.DeleteLogGroup(w.ctx(), &logs.DeleteLogGroupInput{LogGroupName: name}))
			_, err := w.logs.DeleteLogGroup(w.ctx(), &logs.DeleteLogGroupInput{LogGroupName: name})
			w.refused("ResourceNotFoundException", err)
		}},
	}
}

// keeps reports whether the account keeps events: where VictoriaLogs was built.
func (w *world) keeps() bool { return w.notes["logs"] == "kept" }

// messages compares how many events there are with how many were put.
func (w *world) messages(got, put int) {
	w.Helper()
	if !w.keeps() {
		put = 0
	}
	if got != put {
		w.Errorf("%d events, want %d", got, put)
	}
}

func putEvents(w *world) {
	now := time.Now().UnixMilli()
	in := &logs.PutLogEventsInput{LogGroupName: aws.String(liveGroup), LogStreamName: aws.String(liveStream), LogEvents: []types.InputLogEvent{
		{Timestamp: aws.Int64(now), Message: aws.String("begun")}, {Timestamp: aws.Int64(now), Message: aws.String(`{"verb":"get","n":[1,2]}`)},
	}}
	out, err := w.logs.PutLogEvents(w.ctx(), in)
	if err != nil && strings.Contains(err.Error(), "make logs") {
		w.Log("the log store is not built: ", err)
		return
	}
	if need(out, err).RejectedLogEventsInfo != nil {
		w.Errorf("rejected: %+v", out.RejectedLogEventsInfo)
	}
	w.notes["logs"] = "kept"
	in.LogEvents[0].Timestamp = aws.Int64(now + 1)
	_, err = w.logs.PutLogEvents(w.ctx(), in)
	w.refused("InvalidParameterException", err) // not in the order of time
}

func startQuery(w *world) {
	in := &logs.StartQueryInput{LogGroupName: aws.String(liveGroup), StartTime: aws.Int64(time.Now().Add(-time.Hour).Unix()), EndTime: aws.Int64(time.Now().Unix()), QueryString: aws.String("fields n.1 | filter verb = 'get'")}
	w.notes["query"] = *need(w.logs.StartQuery(w.ctx(), in)).QueryId
	with := func(change func(*logs.StartQueryInput)) error {
		other := *in
		change(&other)
		_, err := w.logs.StartQuery(w.ctx(), &other)
		return err
	}
	err := with(func(in *logs.StartQueryInput) { in.QueryString = aws.String("filtre x") })
	if bad, ok := errors.AsType[*types.MalformedQueryException](err); !ok || bad.QueryCompileError == nil || aws.ToInt32(bad.QueryCompileError.Location.StartCharOffset) != 0 || aws.ToInt32(bad.QueryCompileError.Location.EndCharOffset) != 6 {
		w.Errorf("%v", err)
	}
	w.refused("ResourceNotFoundException", with(func(in *logs.StartQueryInput) { in.LogGroupName = aws.String("none") }))
	w.refused("InvalidParameterException", with(func(in *logs.StartQueryInput) { in.QueryString = aws.String(strings.Repeat("x", 10_001)) }))
	w.refused("InvalidParameterException", with(func(in *logs.StartQueryInput) { in.StartTime = aws.Int64(*in.EndTime + 1) }))
	w.refused("InvalidParameterException", with(func(in *logs.StartQueryInput) { in.LogGroupName = nil }))
}

func queryResults(w *world) {
	var out *logs.GetQueryResultsOutput
	for range 300 {
		out = need(w.logs.GetQueryResults(w.ctx(), &logs.GetQueryResultsInput{QueryId: aws.String(w.notes["query"])}))
		if out.Status != types.QueryStatusScheduled && out.Status != types.QueryStatusRunning {
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	if out.Status != types.QueryStatusComplete {
		w.Fatalf("the query is %s", out.Status)
	}
	w.messages(len(out.Results), 1)
	if w.keeps() && (aws.ToString(out.Results[0][0].Field) != "n.1" || aws.ToString(out.Results[0][0].Value) != "2") {
		w.Errorf("%+v", out.Results)
	}
	_, err := w.logs.GetQueryResults(w.ctx(), &logs.GetQueryResultsInput{QueryId: aws.String("12345678-1234-4234-8234-123456789012")})
	w.refused("ResourceNotFoundException", err)
}
