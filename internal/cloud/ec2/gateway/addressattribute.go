// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

type addressesAttributeInput struct {
	AllocationIDs []string
	Attribute     string
	MaxResults    *int32
	NextToken     string
	DryRun        bool
}

type addressesAttributeOutput struct{ Addresses []struct{} }

// describeAddressesAttribute lists the domain names of addresses. No address has a domain name.
func (a *Actions) describeAddressesAttribute() awsfront.Spec[addressesAttributeInput, addressesAttributeOutput] {
	return awsfront.Spec[addressesAttributeInput, addressesAttributeOutput]{
		Do: func(ctx context.Context, _ *awsfront.Call, in *addressesAttributeInput) (*addressesAttributeOutput, error) {
			if err := ec2resource.Only("attribute", in.Attribute, "domain-name"); err != nil {
				return nil, err
			}
			for _, id := range in.AllocationIDs {
				if _, err := a.addresses().Get(ctx, id); err != nil {
					return nil, err
				}
			}
			page := ec2resource.Paged{Filtered: ec2resource.Filtered{DryRun: in.DryRun, Filters: []ec2filter.Filter{}}, MaxResults: in.MaxResults, NextToken: in.NextToken}
			return ec2resource.None(page, &addressesAttributeOutput{[]struct{}{}}, "", "", nil)
		},
	}
}
