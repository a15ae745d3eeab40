// SPDX-License-Identifier: Apache-2.0

package elasticloadbalancing

import (
	"context"
	"strings"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
)

type balancersInput struct {
	LoadBalancerARNs, Names []string
	Marker                  string
	PageSize                *int32
}

type balancersOutput struct{ LoadBalancers []struct{} }

func (a *api) describeLoadBalancers() awsfront.Spec[balancersInput, balancersOutput] {
	return awsfront.Spec[balancersInput, balancersOutput]{
		Do: func(_ context.Context, call *awsfront.Call, in *balancersInput) (*balancersOutput, error) {
			for _, names := range [][]string{in.LoadBalancerARNs, in.Names} {
				if len(names) > 0 {
					return nil, noBalancer(names)
				}
			}
			return &balancersOutput{[]struct{}{}}, a.checkPage(call, in.PageSize, in.Marker)
		},
	}
}

type groupsInput struct {
	LoadBalancerARN        string
	TargetGroupARNs, Names []string
	Marker                 string
	PageSize               *int32
}

type groupsOutput struct{ TargetGroups []struct{} }

func (a *api) describeTargetGroups() awsfront.Spec[groupsInput, groupsOutput] {
	return awsfront.Spec[groupsInput, groupsOutput]{
		Do: func(_ context.Context, call *awsfront.Call, in *groupsInput) (*groupsOutput, error) {
			switch {
			case in.LoadBalancerARN != "":
				return nil, noBalancer([]string{in.LoadBalancerARN})
			case len(in.TargetGroupARNs) > 0:
				return nil, noGroup(in.TargetGroupARNs)
			case len(in.Names) > 0:
				return nil, noGroup(in.Names)
			}
			return &groupsOutput{[]struct{}{}}, a.checkPage(call, in.PageSize, in.Marker)
		},
	}
}

type tagsInput struct{ ResourceARNs []string }

func (*api) describeTags() awsfront.Spec[tagsInput, struct{}] {
	return awsfront.Spec[tagsInput, struct{}]{
		Do: func(_ context.Context, _ *awsfront.Call, in *tagsInput) (*struct{}, error) {
			if len(in.ResourceARNs) == 0 {
				return nil, awsfault.Errorf(validationError, "At least one resource ARN must be specified")
			}
			text := in.ResourceARNs[0] // no resource has any of them, so the first one is the answer
			parsed, err := arn.Parse(text)
			kind, _, _ := strings.Cut(parsed.Resource, "/")
			switch {
			case err != nil || parsed.Service != Classic:
				return nil, awsfault.Errorf(validationError, "'%.300s' is not a valid load balancer ARN", text)
			case kind == "targetgroup":
				return nil, noGroup([]string{text})
			}
			return nil, noBalancer([]string{text})
		},
	}
}

func noBalancer(names []string) error {
	return awsfault.Errorf(loadBalancerNotFound, "Load balancers '[%.300s]' not found", strings.Join(names, ", "))
}

func noGroup(names []string) error {
	return awsfault.Errorf(targetGroupNotFound, "Target groups '[%.300s]' not found", strings.Join(names, ", "))
}
