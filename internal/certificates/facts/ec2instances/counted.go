// SPDX-License-Identifier: Apache-2.0

package ec2instances

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
)

// counted tells of each call.
type counted struct {
	Describer
	called func()
}

// DescribeInstances calls.
func (c counted) DescribeInstances(ctx context.Context, in *sdk.DescribeInstancesInput, options ...func(*sdk.Options)) (*sdk.DescribeInstancesOutput, error) {
	c.called()
	return c.Describer.DescribeInstances(ctx, in, options...)
}
