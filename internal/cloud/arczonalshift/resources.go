// SPDX-License-Identifier: Apache-2.0

package arczonalshift

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
)

// inResource is an active shift in what is told of its resource.
type inResource struct {
	AppliedStatus, ZonalShiftID, ResourceIdentifier, AwayFrom, Comment, ShiftType string
	ExpiryTime, StartTime                                                         time.Time
}

// resource is a cluster that can be shifted. Weights are 0 in zones that it is shifted away from, and else 1.
type resource struct {
	ARN, Name            string
	AppliedWeights       map[string]float64
	ZonalShifts          []*inResource
	Autoshifts           []struct{}
	ZonalAutoshiftStatus string
}

// listed is a resource in a list.
type listed struct {
	resource

	AvailabilityZones []string
	PracticeRunStatus string
}

const (
	applied  = "APPLIED"
	disabled = "DISABLED"
)

func (a *api) resource(ctx context.Context, call *awsfront.Call, c *v1alpha1.Cluster) (*listed, error) {
	zones, err := a.zones(ctx, c)
	if err != nil {
		return nil, err
	}
	shifts, err := a.shifts(ctx, client.InNamespace(c.Namespace))
	if err != nil {
		return nil, err
	}
	l := &listed{AvailabilityZones: []string{}, PracticeRunStatus: disabled, resource: resource{
		ARN: a.clusterARN(call, c.Spec.Name), Name: c.Spec.Name, AppliedWeights: map[string]float64{}, ZonalShifts: []*inResource{}, Autoshifts: []struct{}{}, ZonalAutoshiftStatus: disabled,
	}}
	for _, zone := range zones {
		l.AvailabilityZones, l.AppliedWeights[zone.ID] = append(l.AvailabilityZones, zone.ID), 1
	}
	for i := range shifts {
		s := a.show(call, &shifts[i])
		if s.Status != string(v1alpha1.ZonalShiftActive) {
			continue
		}
		l.AppliedWeights[s.AwayFrom] = 0
		l.ZonalShifts = append(l.ZonalShifts, &inResource{applied, s.ZonalShiftID, s.ResourceIdentifier, s.AwayFrom, s.Comment, zonalShift, s.ExpiryTime, s.StartTime})
	}
	return l, nil
}

type resourceInput struct{ ResourceIdentifier string }

func (a *api) getManagedResource() awsfront.Spec[resourceInput, resource] {
	return awsfront.Spec[resourceInput, resource]{
		About: func(ctx context.Context, call *awsfront.Call, in *resourceInput) ([]awsfront.Target, error) {
			name, err := a.clusterName(call, in.ResourceIdentifier)
			if err != nil {
				return nil, err
			}
			return a.about(ctx, call, name)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *resourceInput) (*resource, error) {
			name, err := a.clusterName(call, in.ResourceIdentifier)
			if err != nil {
				return nil, err
			}
			of, err := a.managed(ctx, name)
			if err != nil {
				return nil, err
			}
			l, err := a.resource(ctx, call, of)
			if err != nil {
				return nil, err
			}
			return &l.resource, nil
		},
	}
}

type pageInput struct {
	NextToken  string
	MaxResults *int32
}

type resourcesOutput struct {
	Items     []*listed
	NextToken string
}

func (a *api) listManagedResources() awsfront.Spec[pageInput, resourcesOutput] {
	return awsfront.Spec[pageInput, resourcesOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *pageInput) (*resourcesOutput, error) {
			var all v1alpha1.ClusterList
			if err := a.Management.List(ctx, &all); err != nil {
				return nil, fault(err)
			}
			managed := all.Items[:0]
			for _, c := range all.Items {
				if isManaged(&c) {
					managed = append(managed, c)
				}
			}
			page, next, err := awsresource.Page(a.Account, call, nil, managed, func(c v1alpha1.Cluster) string { return c.Name }, in.MaxResults, in.NextToken)
			if err != nil {
				return nil, err
			}
			out := &resourcesOutput{Items: []*listed{}, NextToken: next}
			for i := range page {
				l, err := a.resource(ctx, call, &page[i])
				if err != nil {
					return nil, err
				}
				out.Items = append(out.Items, l)
			}
			return out, nil
		},
	}
}

type autoshiftsInput struct {
	pageInput

	Status string
}

type autoshiftsOutput struct{ Items []struct{} }

// listAutoshifts answers that there are none: nobody shifts a cluster but its people.
func (a *api) listAutoshifts() awsfront.Spec[autoshiftsInput, autoshiftsOutput] {
	return awsfront.Spec[autoshiftsInput, autoshiftsOutput]{
		Do: func(context.Context, *awsfront.Call, *autoshiftsInput) (*autoshiftsOutput, error) {
			return &autoshiftsOutput{Items: []struct{}{}}, nil
		},
	}
}
