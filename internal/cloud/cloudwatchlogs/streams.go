// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/plane/logquery"
)

// logStreams are the log streams that somebody made. The log streams of clusters are there with their first event.
var logStreams = awsrecord.Kind[logStream]{Type: "log-stream"}

// logStream is what is kept of a log stream. The record's name is the stream's.
type logStream struct {
	Group string `json:"group"`
}

// labelGroup has the id of the log group's record.
const labelGroup = "muster.dev/log-group"

func streamID(group, name string) string { return logStreams.NameOf(group + ":" + name) }

// streams has the actions about log streams.
type streams struct{ *api }

type streamInput struct{ LogGroupName, LogStreamName string }

// checkStream checks the name of a log stream.
func checkStream(name string) error {
	if name == "" || len(name) > maxName || strings.ContainsAny(name, ":*") {
		return awsfault.Errorf(invalidParameter, "1 validation error detected: Value '%.100s' at 'logStreamName' failed to satisfy constraint: "+
			"Member must have from 1 to %d characters and satisfy regular expression pattern: [^:*]*", name, maxName)
	}
	return nil
}

// checkPrefix checks what the names of log streams are to begin with; nil is anything.
func checkPrefix(prefix *string) error {
	if prefix != nil && (*prefix == "" || len(*prefix) > maxName || strings.ContainsAny(*prefix, ":*")) {
		return awsfault.Errorf(invalidParameter, "1 validation error detected: Value '%.100s' at 'logStreamNamePrefix' failed to satisfy constraint: "+
			"Member must have from 1 to %d characters and satisfy regular expression pattern: [^:*]*", *prefix, maxName)
	}
	return nil
}

func missingStream() error {
	return awsfault.Errorf(notFound, "The specified log stream does not exist.")
}

// stream is about a log stream.
func (a *api) stream(ctx context.Context, call *awsfront.Call, group, name string) ([]awsfront.Target, error) {
	if err := checkStream(name); err != nil {
		return nil, err
	}
	targets, err := a.named(ctx, call, group)
	for i := range targets {
		targets[i].Resource += name
	}
	return targets, err
}

// require refuses a log stream that is not there: nobody made it, and it has no event.
func (s streams) require(ctx context.Context, call *awsfront.Call, group, name string) error {
	if _, err := s.find(ctx, group); err != nil {
		return err
	}
	_, err := logStreams.Get(ctx, s.Management, streamID(group, name))
	if !apierrors.IsNotFound(err) {
		return kept(err)
	}
	has, err := logquery.HasStream(ctx, s.kept(), logOf(call, group), name)
	if err != nil {
		return unanswered(err)
	}
	if !has {
		return missingStream()
	}
	return nil
}

func (s streams) create() awsfront.Spec[streamInput, struct{}] {
	return awsfront.Spec[streamInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *streamInput) ([]awsfront.Target, error) {
			return s.stream(ctx, call, in.LogGroupName, in.LogStreamName)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *streamInput) (*struct{}, error) {
			if _, err := s.find(ctx, in.LogGroupName); err != nil {
				return nil, err
			}
			has, err := logquery.HasStream(ctx, s.kept(), logOf(call, in.LogGroupName), in.LogStreamName)
			if err != nil {
				return nil, unanswered(err)
			}
			if has {
				return nil, awsfault.Errorf(alreadyExists, "The specified log stream already exists")
			}
			err = logStreams.Create(ctx, s.Management, &awsrecord.Record[logStream]{
				ID: streamID(in.LogGroupName, in.LogStreamName), Name: in.LogStreamName, Data: logStream{Group: in.LogGroupName},
				Labels: map[string]string{labelGroup: groups.NameOf(in.LogGroupName)},
			})
			if apierrors.IsAlreadyExists(err) {
				return nil, awsfault.Errorf(alreadyExists, "The specified log stream already exists")
			}
			return nil, kept(err)
		},
	}
}

func (s streams) delete() awsfront.Spec[streamInput, struct{}] {
	return awsfront.Spec[streamInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *streamInput) ([]awsfront.Target, error) {
			return s.stream(ctx, call, in.LogGroupName, in.LogStreamName)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *streamInput) (*struct{}, error) {
			if err := s.require(ctx, call, in.LogGroupName, in.LogStreamName); err != nil {
				return nil, err
			}
			if err := s.wipe(ctx, logOf(call, in.LogGroupName), in.LogStreamName); err != nil {
				return nil, err
			}
			err := logStreams.Delete(ctx, s.Management, streamID(in.LogGroupName, in.LogStreamName))
			if apierrors.IsNotFound(err) {
				return nil, nil //nolint:nilnil // a stream of a cluster has no record; and the action answers nothing
			}
			return nil, kept(err)
		},
	}
}

// made lists the log streams of a log group that somebody made.
func (a *api) made(ctx context.Context, group string) ([]awsrecord.Record[logStream], error) {
	all, err := logStreams.List(ctx, a.Management, client.MatchingLabels{labelGroup: groups.NameOf(group)})
	if err != nil {
		return nil, away(err)
	}
	return all, nil
}
