// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
)

// instanceDetails is an instance of any group.
type instanceDetails struct {
	shownInstance
	AutoScalingGroupName string
}

type describeInstancesInput struct {
	InstanceIDs []string
	MaxRecords  *int32
	NextToken   string
}

type describeInstancesOutput struct {
	AutoScalingInstances []instanceDetails
	NextToken            string
}

func describeInstances(a *api) awsfront.Spec[describeInstancesInput, describeInstancesOutput] {
	return awsfront.Spec[describeInstancesInput, describeInstancesOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeInstancesInput) (*describeInstancesOutput, error) {
			all, err := a.groups(ctx)
			if err != nil {
				return nil, err
			}
			zones, err := a.zones(ctx)
			if err != nil {
				return nil, err
			}
			var shown []instanceDetails
			for _, g := range all {
				for _, i := range a.showInstances(g, zones) {
					if len(in.InstanceIDs) == 0 || slices.Contains(in.InstanceIDs, i.InstanceID) {
						details := instanceDetails{i, g.name}
						details.HealthStatus = strings.ToUpper(details.HealthStatus) // in this action alone
						shown = append(shown, details)
					}
				}
			}
			out := &describeInstancesOutput{}
			out.AutoScalingInstances, out.NextToken, err = awsresource.Page(a.Account, call, []any{in.InstanceIDs}, shown, func(d instanceDetails) string { return d.InstanceID }, in.MaxRecords, in.NextToken)
			return out, err
		},
	}
}
