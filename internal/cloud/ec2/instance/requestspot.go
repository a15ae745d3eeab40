// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/launchtemplate"
	"muster.dev/muster/internal/cloud/spotrequest"
)

// oneTime is the type of the requests that Muster has.
const oneTime = "one-time"

// defaultValidity is for how long EC2 keeps a request that waits, if it does not say itself.
const defaultValidity = 7 * 24 * time.Hour

// requestSpotInstancesInput has the parameters that Muster can honour. A request is fulfilled at once or refused, so that the
// front refuses parameters by which it would wait, such as ValidFrom.
type requestSpotInstancesInput struct {
	ClientToken                  string
	DryRun                       bool
	InstanceCount                *int32
	InstanceInterruptionBehavior string
	LaunchSpecification          requestedLaunch
	SpotPrice, Type              string
	TagSpecifications            []launchtemplate.TagSpecification
	ValidUntil                   *time.Time
}

// requestedLaunch is what the instances of a request are launched as.
type requestedLaunch struct {
	BlockDeviceMappings []launchtemplate.BlockDeviceMapping
	EbsOptimized        *bool
	IAMInstanceProfile  *launchtemplate.InstanceProfile
	ImageID             string
	InstanceType        string
	KeyName             string
	Monitoring          *launchtemplate.Monitoring
	NetworkInterfaces   []launchtemplate.NetworkInterface
	Placement           *launchtemplate.Placement
	SecurityGroupIDs    []string
	SecurityGroups      []string // by name
	SubnetID            string
	UserData            string
}

type requestSpotInstancesOutput struct{ SpotInstanceRequests []spotRequest }

func (s SpotRequests) request() awsfront.Spec[requestSpotInstancesInput, requestSpotInstancesOutput] {
	return awsfront.Spec[requestSpotInstancesInput, requestSpotInstancesOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *requestSpotInstancesInput) ([]awsfront.Target, error) {
			return s.aboutRequest(ctx, call, in.launch(call.Now))
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *requestSpotInstancesInput) (*requestSpotInstancesOutput, error) {
			if err := in.check(call.Now); err != nil {
				return nil, err
			}
			machines, gone, err := s.a.makeInstances(ctx, call, in.launch(call.Now))
			if err != nil {
				return nil, err
			}
			view, err := s.a.viewInstances(ctx, call)
			if err != nil {
				return nil, err
			}
			out := &requestSpotInstancesOutput{}
			for _, shown := range view.launched(machines, gone) {
				out.SpotInstanceRequests = append(out.SpotInstanceRequests, view.spotRequest(&shown))
			}
			return out, nil
		},
	}
}

// launch is the request of RunInstances that fulfils this one. All instances are launched or none: a request that is left without
// one would have to wait.
func (in *requestSpotInstancesInput) launch(now time.Time) *runInstancesInput {
	count, until := int32(1), now.Add(defaultValidity)
	if in.InstanceCount != nil {
		count = *in.InstanceCount
	}
	if in.ValidUntil != nil {
		until = *in.ValidUntil
	}
	of := in.LaunchSpecification
	return &runInstancesInput{
		Data: launchtemplate.Data{
			BlockDeviceMappings: of.BlockDeviceMappings, EbsOptimized: of.EbsOptimized, IAMInstanceProfile: of.IAMInstanceProfile, ImageID: of.ImageID, InstanceType: of.InstanceType,
			KeyName: of.KeyName, Monitoring: of.Monitoring, NetworkInterfaces: of.NetworkInterfaces, Placement: of.Placement, SecurityGroupIDs: of.SecurityGroupIDs, UserData: of.UserData,
			InstanceMarketOptions: &launchtemplate.MarketOptions{MarketType: string(v1alpha1.MarketSpot), SpotOptions: &launchtemplate.SpotOptions{MaxPrice: in.SpotPrice}},
			TagSpecifications:     in.TagSpecifications,
		},
		MinCount: &count, MaxCount: &count, SubnetID: of.SubnetID, SecurityGroups: of.SecurityGroups, ClientToken: in.ClientToken, DryRun: in.DryRun, requested: &until,
	}
}

// check refuses requests that Muster does not keep.
func (in *requestSpotInstancesInput) check(now time.Time) error {
	count, behavior := in.InstanceCount, in.InstanceInterruptionBehavior
	switch {
	case in.Type == "persistent":
		return awsfault.Errorf(ec2resource.InvalidParameter, "Value (persistent) for parameter Type is invalid. Muster has one-time only: nothing is launched again after an interruption")
	case behavior == "stop" || behavior == "hibernate": // the words are EC2's
		return awsfault.Errorf(ec2resource.InvalidCombination, "The request with type 'one-time' is not supported when instanceInterruptionBehavior is set to '%s'.", behavior)
	case count != nil && *count < 1:
		return awsfault.Errorf(ec2resource.InvalidParameter, "Value (%d) for parameter InstanceCount is invalid. It must be at least 1", *count)
	case count != nil && *count > maxInstances:
		return awsfault.Errorf("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded: Muster launches at most %d instances by one request", maxInstances)
	case in.ValidUntil != nil && !in.ValidUntil.After(now):
		return awsfault.Errorf(ec2resource.InvalidParameter, "Value (%s) for parameter ValidUntil is invalid. It must be in the future", in.ValidUntil.UTC().Format(time.RFC3339))
	}
	if err := ec2resource.Only("Type", in.Type, oneTime); err != nil {
		return err
	}
	if err := ec2resource.Only("InstanceInterruptionBehavior", behavior, "terminate"); err != nil {
		return err
	}
	for _, s := range in.TagSpecifications {
		if s.ResourceType != spotrequest.Resource {
			return awsfault.Errorf(ec2resource.InvalidParameter, "'%.64s' is not a valid taggable resource type for this operation.", s.ResourceType)
		}
	}
	return launchtemplate.CheckPrice("SpotPrice", in.SpotPrice)
}

// aboutRequest are the resources that a request uses and makes, as EC2 documents them: unlike RunInstances, it
// decides about the request and not about the instance.
func (s SpotRequests) aboutRequest(ctx context.Context, call *awsfront.Call, in *runInstancesInput) ([]awsfront.Target, error) {
	subnet, profile, err := whereAndAs(ctx, s.a, in, in.Data)
	if err != nil {
		return nil, err
	}
	targets, err := aboutUses(ctx, s.a, call, in, in.Data, subnet)
	if err != nil {
		return nil, err
	}
	if in.KeyName != "" {
		targets = append(targets, s.a.ec2.Target(call, "key-pair", in.KeyName, nil, map[string][]string{"ec2:KeyPairName": {in.KeyName}}))
	}
	made := map[string]int{spotrequest.Resource: len(targets)}
	targets = append(targets, s.a.ec2.Target(call, spotrequest.Resource, "*", nil, nil))
	return s.a.addPassRole(ctx, call, aboutTags(call, targets, in.Data, made), profile)
}
