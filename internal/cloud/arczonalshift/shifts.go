// SPDX-License-Identifier: Apache-2.0

package arczonalshift

import (
	"context"
	"time"

	"github.com/google/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/network/zonalshift"
)

// shown is a shift as ARC shows it.
type shown struct {
	ZonalShiftID, ResourceIdentifier, AwayFrom, Status, Comment string
	ExpiryTime, StartTime                                       time.Time
}

func (a *api) show(call *awsfront.Call, s *v1alpha1.ZonalShift) *shown {
	return &shown{
		ZonalShiftID: s.Name, ResourceIdentifier: a.clusterARN(call, s.Spec.ClusterName), AwayFrom: a.zoneID(s.Spec.AwayFrom), Comment: s.Spec.Comment,
		Status: string(s.PhaseAt(call.Now)), ExpiryTime: s.Spec.ExpiryTime.Time, StartTime: s.CreationTimestamp.Time,
	}
}

type startInput struct {
	ResourceIdentifier, AwayFrom string
	ExpiresIn, Comment           *string
}

func (a *api) startZonalShift() awsfront.Spec[startInput, shown] {
	return awsfront.Spec[startInput, shown]{
		About: func(ctx context.Context, call *awsfront.Call, in *startInput) ([]awsfront.Target, error) {
			name, err := a.clusterName(call, in.ResourceIdentifier)
			if err != nil {
				return nil, err
			}
			return a.about(ctx, call, name)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *startInput) (*shown, error) {
			name, err := a.clusterName(call, in.ResourceIdentifier)
			if err != nil {
				return nil, err
			}
			defer a.locks.Hold(name)()
			of, err := a.managed(ctx, name)
			if err != nil {
				return nil, err
			}
			zones, err := a.zones(ctx, of)
			if err != nil {
				return nil, err
			}
			shifts, err := a.shifts(ctx, client.InNamespace(of.Namespace))
			if err != nil {
				return nil, err
			}
			ask := zonalshift.Ask{AwayFrom: in.AwayFrom, ExpiresIn: in.ExpiresIn, Comment: in.Comment}
			made, err := zonalshift.Start(uuid.NewString(), of, zones, shifts, ask, call.Now)
			if err != nil {
				return nil, fault(err)
			}
			if err := a.Management.Create(ctx, made); err != nil {
				return nil, fault(err)
			}
			return a.show(call, made), nil
		},
	}
}

type updateInput struct {
	ZonalShiftID       string
	ExpiresIn, Comment *string
}

func (a *api) updateZonalShift() awsfront.Spec[updateInput, shown] {
	return change(a, func(in *updateInput) string { return in.ZonalShiftID }, func(call *awsfront.Call, s *v1alpha1.ZonalShift, in *updateInput) error {
		return zonalshift.Update(s, zonalshift.Ask{ExpiresIn: in.ExpiresIn, Comment: in.Comment}, call.Now)
	})
}

type cancelInput struct{ ZonalShiftID string }

func (a *api) cancelZonalShift() awsfront.Spec[cancelInput, shown] {
	return change(a, func(in *cancelInput) string { return in.ZonalShiftID }, func(call *awsfront.Call, s *v1alpha1.ZonalShift, _ *cancelInput) error {
		return zonalshift.Cancel(s, call.Now)
	})
}

// change is an action that changes one shift, whose id is in the input.
func change[In any](a *api, id func(*In) string, how func(*awsfront.Call, *v1alpha1.ZonalShift, *In) error) awsfront.Spec[In, shown] {
	return awsfront.Spec[In, shown]{
		About: func(ctx context.Context, call *awsfront.Call, in *In) ([]awsfront.Target, error) {
			return a.aboutShift(ctx, call, id(in))
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *In) (*shown, error) {
			var s *v1alpha1.ZonalShift
			err := awsresource.Change(ctx, func() (client.Writer, client.Object, error) {
				found, err := a.shift(ctx, id(in))
				s = found
				return a.Management, found, err
			}, func() error { return fault(how(call, s, in)) }, fault)
			if err != nil {
				return nil, err
			}
			return a.show(call, s), nil
		},
	}
}

type listInput struct {
	NextToken, Status, ResourceIdentifier string
	MaxResults                            *int32
}

// summary is a shift in a list.
type summary struct {
	shown

	ShiftType string
}

type listOutput struct {
	Items     []*summary
	NextToken string
}

// zonalShift is the type of shifts that people start.
const zonalShift = "ZONAL_SHIFT"

func (a *api) listZonalShifts() awsfront.Spec[listInput, listOutput] {
	return awsfront.Spec[listInput, listOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *listInput) (*listOutput, error) {
			var of []client.ListOption
			if in.ResourceIdentifier != "" {
				name, err := a.clusterName(call, in.ResourceIdentifier)
				if err != nil {
					return nil, err
				}
				of = append(of, client.InNamespace(v1alpha1.ClusterSlug(name)))
			}
			switch v1alpha1.ZonalShiftPhase(in.Status) {
			case "", v1alpha1.ZonalShiftActive, v1alpha1.ZonalShiftExpired, v1alpha1.ZonalShiftCanceled:
			default:
				return nil, fault(&zonalshift.Refusal{Code: zonalshift.Invalid, Reason: "InvalidStatus", Message: "the status must be ACTIVE, EXPIRED or CANCELED"})
			}
			all, err := a.shifts(ctx, of...)
			if err != nil {
				return nil, err
			}
			chosen := all[:0]
			for _, s := range all {
				if in.Status == "" || in.Status == string(s.PhaseAt(call.Now)) {
					chosen = append(chosen, s)
				}
			}
			page, next, err := awsresource.Page(a.Account, call, []any{in.Status, in.ResourceIdentifier}, chosen, func(s v1alpha1.ZonalShift) string { return s.Name }, in.MaxResults, in.NextToken)
			if err != nil {
				return nil, err
			}
			out := &listOutput{Items: []*summary{}, NextToken: next}
			for i := range page {
				out.Items = append(out.Items, &summary{*a.show(call, &page[i]), zonalShift})
			}
			return out, nil
		},
	}
}
