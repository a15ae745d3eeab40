// SPDX-License-Identifier: Apache-2.0

package awsresource

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/nexttoken"
)

// Account is what the services of an account share.
type Account struct {
	// Management reads and writes the management plane. It may answer describing actions from memory, which has what
	// was written before. A service whose resources are no objects has no use for it.
	Management client.Client
	// Pages seals the tokens of lists.
	Pages  *nexttoken.Sealer
	Region string
	// TagSources is where each service adds the list of its resources that have tags. It may be nil.
	TagSources *TagSources
}

// ARN is the name of a resource of the caller's account in the region and the call's service, such as vpc/vpc-0123.
func (a Account) ARN(call *awsfront.Call, resource string) string {
	return arn.ARN{Partition: "aws", Service: call.Service, Region: a.Region, Account: call.Caller.Account(), Resource: resource}.String()
}
