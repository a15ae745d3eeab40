// SPDX-License-Identifier: Apache-2.0

package kms

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsrecord"
)

const day = 24 * time.Hour

// The days for which a key that is to be deleted can still be kept.
const (
	leastPending   = 7
	mostPending    = 30
	defaultPending = 30
)

// changing is an action that changes one key and answers nothing.
func changing(a *api, disabledToo bool, change func(*awsfront.Call, *awsrecord.Record[key])) awsfront.Spec[keyInput, struct{}] {
	return awsfront.Spec[keyInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *keyInput) ([]awsfront.Target, error) {
			return a.aboutKey(ctx, call, in.KeyID, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *keyInput) (*struct{}, error) {
			return nil, a.change(ctx, call, in.KeyID, func(r *awsrecord.Record[key]) error { return a.usable(call, r, disabledToo) },
				func(r *awsrecord.Record[key]) error { change(call, r); return nil })
		},
	}
}

func (a *api) enableKey() awsfront.Spec[keyInput, struct{}] {
	return changing(a, false, func(_ *awsfront.Call, r *awsrecord.Record[key]) { r.Data.Disabled = false })
}

func (a *api) disableKey() awsfront.Spec[keyInput, struct{}] {
	return changing(a, false, func(_ *awsfront.Call, r *awsrecord.Record[key]) { r.Data.Disabled = true })
}

type descriptionInput struct{ KeyID, Description string }

func (a *api) updateKeyDescription() awsfront.Spec[descriptionInput, struct{}] {
	return awsfront.Spec[descriptionInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *descriptionInput) ([]awsfront.Target, error) {
			return a.aboutKey(ctx, call, in.KeyID, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *descriptionInput) (*struct{}, error) {
			if err := checkDescription(in.Description); err != nil {
				return nil, err
			}
			return nil, a.change(ctx, call, in.KeyID, func(r *awsrecord.Record[key]) error { return a.usable(call, r, false) },
				func(r *awsrecord.Record[key]) error { r.Data.Description = in.Description; return nil })
		},
	}
}

type scheduleInput struct {
	KeyID               string
	PendingWindowInDays *int32
}

type scheduleOutput struct {
	KeyID               string
	DeletionDate        time.Time
	KeyState            string
	PendingWindowInDays int32
}

func (a *api) scheduleKeyDeletion() awsfront.Spec[scheduleInput, scheduleOutput] {
	return awsfront.Spec[scheduleInput, scheduleOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *scheduleInput) ([]awsfront.Target, error) {
			conditions := map[string][]string{}
			if in.PendingWindowInDays != nil {
				conditions["kms:ScheduleKeyDeletionPendingWindowInDays"] = []string{fmt.Sprint(*in.PendingWindowInDays)}
			}
			return a.aboutKey(ctx, call, in.KeyID, conditions)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *scheduleInput) (*scheduleOutput, error) {
			days := int32(defaultPending)
			if in.PendingWindowInDays != nil {
				days = *in.PendingWindowInDays
			}
			if days < leastPending || days > mostPending {
				return nil, awsfault.Errorf(validation, "1 validation error detected: Value '%d' at 'pendingWindowInDays' failed to satisfy constraint: Member must be from %d to %d", days, leastPending, mostPending)
			}
			at := call.Now.UTC().Truncate(time.Second).Add(time.Duration(days) * day)
			out := &scheduleOutput{DeletionDate: at, KeyState: statePending, PendingWindowInDays: days}
			return out, a.change(ctx, call, in.KeyID, func(r *awsrecord.Record[key]) error { return a.usable(call, r, false) }, func(r *awsrecord.Record[key]) error {
				out.KeyID, r.Data.DeletionDate = a.keyARN(call, r.ID), &at
				return nil
			})
		},
	}
}

type cancelOutput struct{ KeyID string }

func (a *api) cancelKeyDeletion() awsfront.Spec[keyInput, cancelOutput] {
	return awsfront.Spec[keyInput, cancelOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *keyInput) ([]awsfront.Target, error) {
			return a.aboutKey(ctx, call, in.KeyID, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *keyInput) (*cancelOutput, error) {
			out := &cancelOutput{}
			return out, a.change(ctx, call, in.KeyID, func(r *awsrecord.Record[key]) error {
				if r.Data.DeletionDate == nil {
					return awsfault.Errorf(invalidState, "%s is not pending deletion.", a.keyARN(call, r.ID))
				}
				return nil
			}, func(r *awsrecord.Record[key]) error { // it is disabled then, as on AWS
				out.KeyID, r.Data.DeletionDate, r.Data.Disabled = a.keyARN(call, r.ID), nil, true
				return nil
			})
		},
	}
}

// sweep deletes the keys whose deletion date has passed, and aliases whose key is gone. It may be cut short: what is
// left counts no more.
func (a *api) sweep(ctx context.Context, call *awsfront.Call) error {
	all, err := keys.List(ctx, a.Management)
	if err != nil {
		return away(err)
	}
	living := map[string]bool{}
	for _, r := range all {
		if !r.Data.gone(call.Now) {
			living[r.ID] = true
			continue
		}
		if err := keys.Delete(ctx, a.Management, r.ID); err != nil && !apierrors.IsNotFound(err) {
			return away(err)
		}
	}
	names, err := aliases.List(ctx, a.Management)
	if err != nil {
		return away(err)
	}
	for _, r := range names {
		if living[r.Data.Target] {
			continue
		}
		if _, err := keys.Get(ctx, a.Management, r.Data.Target); !apierrors.IsNotFound(err) { // one that was made since the list
			continue
		}
		if err := aliases.Delete(ctx, a.Management, r.ID); err != nil && !apierrors.IsNotFound(err) {
			return away(err)
		}
	}
	return nil
}
