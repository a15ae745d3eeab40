// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/spotrequest"
)

type cancelSpotInstanceRequestsInput struct {
	SpotInstanceRequestIDs []string
	DryRun                 bool
}

type cancelSpotInstanceRequestsOutput struct {
	CancelledSpotInstanceRequests []cancelledSpotRequest
}

type cancelledSpotRequest struct{ SpotInstanceRequestID, State string }

// cancel cancels requests. Their instances go on, as on EC2: a request that was for one instance has
// nothing left to launch.
func (s SpotRequests) cancel() awsfront.Spec[cancelSpotInstanceRequestsInput, cancelSpotInstanceRequestsOutput] {
	return awsfront.Spec[cancelSpotInstanceRequestsInput, cancelSpotInstanceRequestsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *cancelSpotInstanceRequestsInput) ([]awsfront.Target, error) {
			for _, id := range in.SpotInstanceRequestIDs {
				if err := ec2id.SpotRequest.Check(id); err != nil {
					return nil, err
				}
			}
			return s.a.ec2.About(ctx, call, ec2id.SpotRequest, in.SpotInstanceRequestIDs...)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *cancelSpotInstanceRequestsInput) (*cancelSpotInstanceRequestsOutput, error) {
			if len(in.SpotInstanceRequestIDs) == 0 {
				return nil, awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter SpotInstanceRequestId")
			}
			all, err := s.all(ctx, call)
			if err != nil {
				return nil, err
			}
			chosen, _, err := ec2resource.Choose(s.a.ec2, call, spotRequestNoun(), all, in.SpotInstanceRequestIDs, ec2resource.Paged{})
			if err != nil {
				return nil, err
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			out := &cancelSpotInstanceRequestsOutput{}
			for _, r := range chosen {
				state := r.State
				if !slices.Contains([]string{spotrequest.Closed, spotrequest.Cancelled}, state) {
					if state, err = s.cancelOne(ctx, call, r.InstanceID); err != nil {
						return nil, err
					}
				}
				out.CancelledSpotInstanceRequests = append(out.CancelledSpotInstanceRequests, cancelledSpotRequest{r.SpotInstanceRequestID, state})
			}
			return out, nil
		},
	}
}

// cancelOne notes on the Machine of an instance that its request was cancelled, and returns the state of the request.
func (s SpotRequests) cancelOne(ctx context.Context, call *awsfront.Call, instance string) (string, error) {
	m := &v1alpha1.Machine{}
	err := s.a.ec2.Change(ctx, ec2id.Instance, instance, m, func() error {
		if kept := spotrequest.Of(m); kept.CancelledAt == nil {
			at := metav1.NewTime(call.Now.UTC())
			kept.CancelledAt = &at
			spotrequest.Keep(m, kept)
		}
		return nil
	})
	if ec2resource.IsMissing(err, ec2id.Instance) { // it has ended meanwhile
		return spotrequest.Closed, nil
	}
	return spotrequest.Cancelled, err
}

// tagger is how tags of Spot Instance requests are reached. The request of an instance that has ended is
// described for a while, and its tags do not change any more.
func (s SpotRequests) tagger() ec2resource.Tagger {
	of := func(ctx context.Context, id string, m *v1alpha1.Machine) error {
		if err := ec2id.SpotRequest.Check(id); err != nil {
			return err
		}
		err := s.a.ec2.Get(ctx, ec2id.Instance, spotrequest.InstanceID(id), m)
		if ec2resource.IsMissing(err, ec2id.Instance) || err == nil && m.Spec.MarketType != v1alpha1.MarketSpot {
			return ec2id.SpotRequest.NotFound(id)
		}
		return err
	}
	return ec2resource.Tagger{
		Kind: ec2id.SpotRequest, Resource: spotrequest.Resource,
		About: func(ctx context.Context, call *awsfront.Call, id string) (awsfront.Target, error) {
			m := &v1alpha1.Machine{}
			if err := of(ctx, id, m); err != nil {
				return awsfront.Target{}, err
			}
			return s.a.ec2.Target(call, spotrequest.Resource, id, spotrequest.Of(m).Tags, nil), nil
		},
		Change: func(ctx context.Context, id string, change func(map[string]string) (map[string]string, error)) error {
			m := &v1alpha1.Machine{}
			if err := of(ctx, id, m); err != nil {
				return err
			}
			return s.a.ec2.Change(ctx, ec2id.Instance, m.Name, m, func() error {
				kept := spotrequest.Of(m)
				changed, err := change(awsresource.PlainTags(kept.Tags))
				if err != nil {
					return err
				}
				kept.Tags = awsresource.KeptTags(changed)
				spotrequest.Keep(m, kept)
				return nil
			})
		},
		All: func(ctx context.Context) (map[string]v1alpha1.Tags, error) {
			var all v1alpha1.MachineList
			if err := s.a.ec2.List(ctx, &all); err != nil {
				return nil, err
			}
			tags := map[string]v1alpha1.Tags{}
			for i := range all.Items {
				if m := &all.Items[i]; m.Spec.MarketType == v1alpha1.MarketSpot && m.Spec.Fargate == nil {
					tags[spotrequest.ID(m.Name)] = spotrequest.Of(m).Tags
				}
			}
			return tags, nil
		},
	}
}
