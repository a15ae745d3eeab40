// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

func TestCheckFindsAnActionThatSaysOfNothingWhatItIsAbout(t *testing.T) {
	type input struct{ VpcID string }
	front := awsfronttest.New(t, &awsfronttest.Gate{}, nil)
	ec2resource.Register(&ec2resource.EC2{}, front, "DeleteVpc", awsfront.Spec[input, struct{}]{
		Do: func(context.Context, *awsfront.Call, *input) (*struct{}, error) { return nil, nil },
	})
	if err := front.Check(); err == nil || !strings.Contains(err.Error(), "ec2:DeleteVpc has no About") {
		t.Errorf("%v", err)
	}
}
