// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
)

type createInput struct {
	LogGroupName, KMSKeyID, LogGroupClass string
	Tags                                  map[string]string
	DeletionProtectionEnabled             bool
}

func (a *api) createLogGroup() awsfront.Spec[createInput, struct{}] {
	return awsfront.Spec[createInput, struct{}]{
		About: func(_ context.Context, call *awsfront.Call, in *createInput) ([]awsfront.Target, error) {
			return []awsfront.Target{{Resource: a.resource(call, in.LogGroupName), Conditions: awsresource.RequestTags(nil, awstag.Sorted(in.Tags))}}, checkName(in.LogGroupName)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *createInput) (*struct{}, error) {
			if in.LogGroupClass != "" && !slices.Contains(classes(), in.LogGroupClass) {
				return nil, awsfault.Errorf(invalidParameter, "logGroupClass %.40q is not known: it must be one of %v", in.LogGroupClass, classes())
			}
			if err := a.checkKey(ctx, call, in.KMSKeyID); err != nil {
				return nil, err
			}
			tags, err := awstag.Read(service, awstag.Sorted(in.Tags))
			if err != nil {
				return nil, err
			}
			made := &awsrecord.Record[group]{ID: groups.NameOf(in.LogGroupName), Name: in.LogGroupName, Tags: awsresource.KeptTags(tags), Data: group{
				Class: in.LogGroupClass, Key: in.KMSKeyID, Protected: in.DeletionProtectionEnabled,
			}}
			err = groups.Create(ctx, a.Management, made)
			if apierrors.IsAlreadyExists(err) {
				return nil, awsfault.Errorf(alreadyExists, "The specified log group already exists")
			}
			return nil, kept(err)
		},
	}
}

func classes() []string { return []string{classStandard, classInfrequent, classDelivery} }

// checkKey refuses a key that the account does not have; no key is none.
func (a *api) checkKey(ctx context.Context, call *awsfront.Call, arn string) error {
	if arn == "" {
		return nil
	}
	if err := a.Key(ctx, call.Caller.Account(), arn); err != nil {
		return &awsfault.Error{Code: invalidParameter, Message: "The specified KMS key does not exist or is not allowed to be used: " + err.Error(), Cause: err}
	}
	return nil
}

type nameInput struct{ LogGroupName string }

func (a *api) deleteLogGroup() awsfront.Spec[nameInput, struct{}] {
	return awsfront.Spec[nameInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *nameInput) ([]awsfront.Target, error) {
			return a.named(ctx, call, in.LogGroupName)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *nameInput) (*struct{}, error) {
			found, err := a.find(ctx, in.LogGroupName)
			if err != nil {
				return nil, err
			}
			if found.Data.Protected {
				return nil, awsfault.Errorf(validation, "The log group %s has deletion protection: switch it off first, with PutLogGroupDeletionProtection", in.LogGroupName)
			}
			// The group last: whatever is cut short is done by the next request.
			if err := a.wipe(ctx, logOf(call, in.LogGroupName), ""); err != nil {
				return nil, err
			}
			made, err := a.made(ctx, in.LogGroupName)
			if err != nil {
				return nil, err
			}
			for _, r := range made {
				if err := logStreams.Delete(ctx, a.Management, r.ID); err != nil && !apierrors.IsNotFound(err) {
					return nil, kept(err)
				}
			}
			return nil, kept(groups.Delete(ctx, a.Management, found.ID))
		},
	}
}
