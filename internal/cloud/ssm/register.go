// SPDX-License-Identifier: Apache-2.0

package ssm

import (
	"errors"

	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
)

const service = "ssm"

// api has the actions.
type api struct {
	awsresource.Account
	parameters []ami.Parameter
}

// Register adds the actions to the front.
func Register(f *awsfront.Front, account awsresource.Account) error {
	if account.Pages == nil || account.Region == "" {
		return errors.New("the actions of Systems Manager need a sealer of pages and a region")
	}
	a := &api{account, ami.Parameters()}
	awsfront.Register(f, service, "GetParameter", a.getParameter())
	awsfront.Register(f, service, "GetParameters", a.getParameters())
	awsfront.Register(f, service, "GetParametersByPath", a.getParametersByPath())
	return nil
}
