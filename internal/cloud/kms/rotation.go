// SPDX-License-Identifier: Apache-2.0

package kms

import (
	"context"
	"time"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsrecord"
)

// The days between two rotations.
const (
	leastRotation   = 90
	mostRotation    = 2560
	defaultRotation = 365
)

type rotationOutput struct {
	KeyID                string
	KeyRotationEnabled   bool
	RotationPeriodInDays *int32
	NextRotationDate     time.Time
}

func (a *api) getKeyRotationStatus() awsfront.Spec[keyInput, rotationOutput] {
	return awsfront.Spec[keyInput, rotationOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *keyInput) ([]awsfront.Target, error) {
			return a.aboutKey(ctx, call, in.KeyID, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *keyInput) (*rotationOutput, error) {
			found, err := a.must(ctx, call, in.KeyID, false)
			if err != nil {
				return nil, err
			}
			out, k := &rotationOutput{KeyID: found.ID}, found.Data
			if k.RotationDays == 0 || k.DeletionDate != nil { // a key that is pending deletion is not rotated
				return out, nil
			}
			out.KeyRotationEnabled, out.RotationPeriodInDays = true, &k.RotationDays
			if k.RotatedSince != nil {
				period := time.Duration(k.RotationDays) * day
				passed := call.Now.Sub(*k.RotatedSince)
				out.NextRotationDate = k.RotatedSince.Add(passed - passed%period + period)
			}
			return out, nil
		},
	}
}

type enableRotationInput struct {
	KeyID                string
	RotationPeriodInDays *int32
}

func (a *api) enableKeyRotation() awsfront.Spec[enableRotationInput, struct{}] {
	return awsfront.Spec[enableRotationInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *enableRotationInput) ([]awsfront.Target, error) {
			return a.aboutKey(ctx, call, in.KeyID, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *enableRotationInput) (*struct{}, error) {
			if p := in.RotationPeriodInDays; p != nil && (*p < leastRotation || *p > mostRotation) {
				return nil, awsfault.Errorf(validation, "1 validation error detected: Value '%d' at 'rotationPeriodInDays' failed to satisfy constraint: Member must be from %d to %d", *p, leastRotation, mostRotation)
			}
			since := call.Now.UTC().Truncate(time.Second)
			return nil, a.change(ctx, call, in.KeyID, func(r *awsrecord.Record[key]) error { return a.usable(call, r, true) }, func(r *awsrecord.Record[key]) error {
				k := &r.Data
				switch {
				case in.RotationPeriodInDays != nil:
					k.RotationDays = *in.RotationPeriodInDays
				case k.RotationDays == 0:
					k.RotationDays = defaultRotation
				}
				if k.RotatedSince == nil {
					k.RotatedSince = &since
				}
				return nil
			})
		},
	}
}

func (a *api) disableKeyRotation() awsfront.Spec[keyInput, struct{}] {
	return changing(a, true, func(_ *awsfront.Call, r *awsrecord.Record[key]) { r.Data.RotationDays, r.Data.RotatedSince = 0, nil })
}
