// SPDX-License-Identifier: Apache-2.0

package ssm

import (
	"errors"

	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/nexttoken"
)

const service = "ssm"

// Config is what the actions need.
type Config struct {
	// Pages seals the tokens of lists.
	Pages  *nexttoken.Sealer
	Region string
}

// api has the actions.
type api struct {
	Config
	parameters []ami.Parameter
}

// Register adds the actions to the front.
func Register(f *awsfront.Front, c Config) error {
	if c.Pages == nil || c.Region == "" {
		return errors.New("the actions of Systems Manager need a sealer of pages and a region")
	}
	a := &api{c, ami.Parameters()}
	awsfront.Register(f, service, "GetParameter", a.getParameter())
	awsfront.Register(f, service, "GetParameters", a.getParameters())
	awsfront.Register(f, service, "GetParametersByPath", a.getParametersByPath())
	return nil
}
