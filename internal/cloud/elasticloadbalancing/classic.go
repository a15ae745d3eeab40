// SPDX-License-Identifier: Apache-2.0

package elasticloadbalancing

import (
	"context"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
)

// The codes of what is not there, and of bad parameters.
const (
	loadBalancerNotFound = "LoadBalancerNotFound"
	targetGroupNotFound  = "TargetGroupNotFound"
	validationError      = "ValidationError"
)

type classicInput struct {
	LoadBalancerNames []string
	Marker            string
	PageSize          *int32
}

type classicOutput struct{ LoadBalancerDescriptions []struct{} }

func (a *api) describeClassic() awsfront.Spec[classicInput, classicOutput] {
	return awsfront.Spec[classicInput, classicOutput]{
		Do: func(_ context.Context, call *awsfront.Call, in *classicInput) (*classicOutput, error) {
			if len(in.LoadBalancerNames) > 0 {
				return nil, noClassic(in.LoadBalancerNames[0])
			}
			return &classicOutput{[]struct{}{}}, a.checkPage(call, in.PageSize, in.Marker)
		},
	}
}

type classicTagsInput struct{ LoadBalancerNames []string }

func (*api) describeClassicTags() awsfront.Spec[classicTagsInput, struct{}] {
	return awsfront.Spec[classicTagsInput, struct{}]{
		Do: func(_ context.Context, _ *awsfront.Call, in *classicTagsInput) (*struct{}, error) {
			if len(in.LoadBalancerNames) == 0 {
				return nil, awsfault.Errorf(validationError, "At least one load balancer name must be specified.")
			}
			return nil, noClassic(in.LoadBalancerNames[0])
		},
	}
}

func noClassic(name string) error {
	return awsfault.Errorf(loadBalancerNotFound, "There is no ACTIVE Load Balancer named '%.100s'", name)
}
