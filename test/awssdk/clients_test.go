// SPDX-License-Identifier: Apache-2.0

package awssdk

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
)

func clients() []client {
	return []client{
		{service: "eks", make: func(config aws.Config) any { return eks.NewFromConfig(config) }},
	}
}
