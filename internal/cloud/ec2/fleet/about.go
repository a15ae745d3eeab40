// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// resource is the type of fleets in ARNs and in tag specifications.
const resource = "fleet"

// aboutCreateFleet are the fleet, and for each pool what it uses and makes: IAM is asked about both for ec2:CreateFleet and for
// ec2:RunInstances, which EC2 does on the caller's behalf. A caller who may not use one of the pools is refused as a whole, so
// that no other pool is told about. A dry run does nothing on anybody's behalf: as on EC2, it says whether the caller may use
// CreateFleet. A request that has instances of both markets is asked about for each: its default market alone would let
// somebody buy of the other one.
func (a *Actions) aboutCreateFleet(ctx context.Context, call *awsfront.Call, in *createFleetInput) ([]awsfront.Target, error) {
	if err := in.check(); err != nil { // before each of its pools is looked up: their number is bounded there
		return nil, err
	}
	for i := range in.LaunchTemplateConfigs {
		fixed, err := a.instances.Fix(ctx, in.launch(pool{config: i, override: -1}, false))
		if err != nil {
			return nil, ec2resource.Away(err)
		}
		in.LaunchTemplateConfigs[i].fixed = &fixed
	}
	fleet := a.ec2.Target(call, resource, "*", nil, nil)
	for _, s := range in.TagSpecifications {
		if s.ResourceType == resource {
			fleet.Conditions = awsresource.RequestTags(fleet.Conditions, s.Tags)
		}
	}
	targets, seen := []awsfront.Target{fleet}, map[string]bool{}
	add := func(t awsfront.Target, action string) error {
		t.Action = action
		text, err := json.Marshal(t) // sorts the conditions
		if err != nil {
			return fmt.Errorf("comparing what a fleet is about: %w", err)
		}
		if !seen[string(text)] {
			seen[string(text)] = true
			targets = append(targets, t)
		}
		return nil
	}
	pools, err := a.poolsOf(ctx, in)
	if err != nil {
		return nil, err
	}
	for _, spot := range in.TargetCapacitySpecification.markets() {
		for _, p := range pools {
			about, err := a.instances.AboutLaunch(ctx, call, in.launch(p, spot))
			if err != nil {
				return nil, err
			}
			for _, t := range about {
				if t.Action != "" { // CreateTags, PassRole
					err = add(t, t.Action)
				} else if err = add(t, ""); err == nil && !in.DryRun {
					err = add(t, "ec2:RunInstances")
				}
				if err != nil {
					return nil, err
				}
			}
		}
	}
	return targets, nil
}

// poolsOf lists the pools of a request, in its order. The type of a pool whose template cannot be read is not known; the
// launch says why.
func (a *Actions) poolsOf(ctx context.Context, in *createFleetInput) ([]pool, error) {
	var pools []pool
	for i, of := range in.LaunchTemplateConfigs {
		own := pool{config: i, override: -1}
		kind, err := a.instances.TypeOf(ctx, in.launch(own, false))
		if fault := (*awsfault.Error)(nil); err != nil && (!errors.As(err, &fault) || fault.Cause != nil) {
			return nil, ec2resource.Away(err)
		}
		own.instanceType = kind
		if len(of.Overrides) == 0 {
			pools = append(pools, own)
		}
		for j, over := range of.Overrides {
			p := pool{config: i, override: j, instanceType: kind, priority: over.Priority}
			if over.InstanceType != "" {
				p.instanceType = over.InstanceType
			}
			pools = append(pools, p)
		}
	}
	return pools, nil
}
