// SPDX-License-Identifier: Apache-2.0

package elasticloadbalancing

import (
	"errors"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
)

// The names of the two versions at the front. Both are signed for, and are in policies, as [Classic].
const (
	Classic = "elasticloadbalancing"
	Second  = "elasticloadbalancingv2"
)

// api has the actions.
type api struct{ awsresource.Account }

// Register adds the actions to the front.
func Register(f *awsfront.Front, account awsresource.Account) error {
	if account.Pages == nil {
		return errors.New("the actions of Elastic Load Balancing need a sealer of pages")
	}
	a := &api{account}
	awsfront.Register(f, Classic, "DescribeLoadBalancers", a.describeClassic())
	awsfront.Register(f, Classic, "DescribeTags", a.describeClassicTags())

	awsfront.Register(f, Second, "DescribeLoadBalancers", a.describeLoadBalancers())
	awsfront.Register(f, Second, "DescribeTargetGroups", a.describeTargetGroups())
	awsfront.Register(f, Second, "DescribeTags", a.describeTags())
	return nil
}

// checkPage checks the page of a list that is empty.
func (a *api) checkPage(call *awsfront.Call, size *int32, marker string) error {
	_, _, err := awsresource.Page(a.Account, call, nil, nil, awsresource.Itself, size, marker)
	return err
}
