// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
)

// mostIdentifiers is how many log groups a request can name.
const mostIdentifiers = 50

type describeInput struct {
	LogGroupNamePrefix, LogGroupNamePattern *string
	LogGroupClass                           string
	LogGroupIdentifiers                     []string
	NextToken                               string
	Limit                                   *int32
}

type describeOutput struct {
	LogGroups []shown
	NextToken string
}

// shown is a log group as it is answered.
type shown struct {
	LogGroupName, ARN, LogGroupARN string
	KMSKeyID, LogGroupClass        string
	RetentionInDays                *int32
	CreationTime                   int64 // in milliseconds since 1970
	StoredBytes                    int64
	MetricFilterCount              int32
	DeletionProtectionEnabled      bool
}

func (a *api) show(call *awsfront.Call, r *awsrecord.Record[group]) shown {
	out := shown{
		LogGroupName: r.Name, LogGroupARN: a.arn(call, r.Name), ARN: a.arn(call, r.Name) + allStreams, KMSKeyID: r.Data.Key, LogGroupClass: r.Data.class(),
		CreationTime: r.Created.UnixMilli(), DeletionProtectionEnabled: r.Data.Protected,
	}
	if days := r.Data.Retention; days != 0 {
		out.RetentionInDays = &days
	}
	return out
}

func (a *api) describeLogGroups() awsfront.Spec[describeInput, describeOutput] {
	return awsfront.Spec[describeInput, describeOutput]{
		About: func(_ context.Context, call *awsfront.Call, _ *describeInput) ([]awsfront.Target, error) {
			return []awsfront.Target{{Resource: a.resource(call, "")}}, nil
		},
		Do: a.doDescribe,
	}
}

func (a *api) doDescribe(ctx context.Context, call *awsfront.Call, in *describeInput) (*describeOutput, error) {
	wants, err := a.chooser(call, in)
	if err != nil {
		return nil, err
	}
	parameters := []any{in.LogGroupNamePrefix, in.LogGroupNamePattern, in.LogGroupClass, in.LogGroupIdentifiers}
	asked, err := awsresource.AskedPage(a.Account, call, parameters, in.Limit, in.NextToken)
	if err != nil {
		return nil, err
	}
	all, err := groups.List(ctx, a.Management)
	if err != nil {
		return nil, away(err)
	}
	all = slices.DeleteFunc(all, func(r awsrecord.Record[group]) bool { return !wants(r) })
	page, next, err := awsresource.Cut(asked, all, func(r awsrecord.Record[group]) string { return r.Name })
	out := &describeOutput{LogGroups: []shown{}, NextToken: next}
	for i := range page {
		out.LogGroups = append(out.LogGroups, a.show(call, &page[i]))
	}
	return out, err
}

// chooser says which log groups a request is about.
func (a *api) chooser(call *awsfront.Call, in *describeInput) (func(awsrecord.Record[group]) bool, error) {
	if in.LogGroupClass != "" && !slices.Contains(classes(), in.LogGroupClass) {
		return nil, awsfault.Errorf(invalidParameter, "logGroupClass %.40q is not known: it must be one of %v", in.LogGroupClass, classes())
	}
	ways := 0
	var chosen func(name string) bool
	if in.LogGroupNamePrefix != nil {
		ways++
		chosen = func(name string) bool { return strings.HasPrefix(name, *in.LogGroupNamePrefix) }
	}
	if in.LogGroupNamePattern != nil {
		ways++
		pattern := strings.ToLower(*in.LogGroupNamePattern)
		chosen = func(name string) bool { return strings.Contains(strings.ToLower(name), pattern) }
	}
	if len(in.LogGroupIdentifiers) > 0 {
		ways++
		if n := len(in.LogGroupIdentifiers); n > mostIdentifiers {
			return nil, awsfault.Errorf(invalidParameter, "logGroupIdentifiers has %d members: there may be %d", n, mostIdentifiers)
		}
		var names []string
		for _, text := range in.LogGroupIdentifiers {
			name, err := a.identified(call, text)
			if err != nil {
				return nil, err
			}
			names = append(names, name)
		}
		chosen = func(name string) bool { return slices.Contains(names, name) }
	}
	if ways > 1 {
		return nil, awsfault.Errorf(invalidParameter, "logGroupNamePrefix, logGroupNamePattern and logGroupIdentifiers are mutually exclusive parameters: send one of them")
	}
	return func(r awsrecord.Record[group]) bool {
		return (chosen == nil || chosen(r.Name)) && (in.LogGroupClass == "" || in.LogGroupClass == r.Data.class())
	}, nil
}
