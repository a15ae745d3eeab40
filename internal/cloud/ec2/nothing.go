// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2filter"
)

// registerNothing adds the actions that list what there never is: tools look for it, and go on.
func (a *api) registerNothing(f *awsfront.Front) {
	register(a, f, "DescribeCapacityReservations", a.describeCapacityReservations())
	register(a, f, "DescribeManagedPrefixLists", a.describeManagedPrefixLists())
	register(a, f, "DescribePlacementGroups", a.describePlacementGroups())
	register(a, f, "DescribePrefixLists", a.describePrefixLists())
	register(a, f, "DescribeSpotPriceHistory", a.describeSpotPriceHistory())
	register(a, f, "DescribeVpcEndpoints", a.describeVpcEndpoints())
}

// none answers a request to describe resources that an account never has. Ids in the request do not exist; code is EC2's error code for that.
func none[T any](in paged, out *T, code, noun string, ids []string) (*T, error) {
	if len(ids) > 0 {
		return nil, awsfault.Errorf(code, "The %s '%.200s' does not exist", noun, strings.Join(ids, ", "))
	}
	if in.NextToken != "" {
		return nil, awsfault.Errorf("InvalidNextToken", "The pagination token is not valid: there is one page")
	}
	return out, dryrun.Would(in.DryRun)
}

type describeVpcEndpointsInput struct {
	paged
	VpcEndpointIDs []string
}

type describeVpcEndpointsOutput struct{ VpcEndpoints []struct{} }

func (a *api) describeVpcEndpoints() awsfront.Spec[describeVpcEndpointsInput, describeVpcEndpointsOutput] {
	return awsfront.Spec[describeVpcEndpointsInput, describeVpcEndpointsOutput]{
		Do: func(_ context.Context, _ *awsfront.Call, in *describeVpcEndpointsInput) (*describeVpcEndpointsOutput, error) {
			return none(in.paged, &describeVpcEndpointsOutput{[]struct{}{}}, "InvalidVpcEndpointId.NotFound", "Vpc Endpoint Id", in.VpcEndpointIDs)
		},
	}
}

type describePrefixListsInput struct {
	paged
	PrefixListIDs []string
}

type describePrefixListsOutput struct{ PrefixLists []struct{} }

func (a *api) describePrefixLists() awsfront.Spec[describePrefixListsInput, describePrefixListsOutput] {
	return awsfront.Spec[describePrefixListsInput, describePrefixListsOutput]{
		Do: func(_ context.Context, _ *awsfront.Call, in *describePrefixListsInput) (*describePrefixListsOutput, error) {
			return none(in.paged, &describePrefixListsOutput{[]struct{}{}}, "InvalidPrefixListId.NotFound", "prefix list ID", in.PrefixListIDs)
		},
	}
}

func (a *api) describeManagedPrefixLists() awsfront.Spec[describePrefixListsInput, describePrefixListsOutput] {
	return awsfront.Spec[describePrefixListsInput, describePrefixListsOutput]{
		Do: func(_ context.Context, _ *awsfront.Call, in *describePrefixListsInput) (*describePrefixListsOutput, error) {
			return none(in.paged, &describePrefixListsOutput{[]struct{}{}}, "InvalidPrefixListID.NotFound", "prefix list ID", in.PrefixListIDs)
		},
	}
}

type describePlacementGroupsInput struct {
	filtered
	GroupIDs   []string
	GroupNames []string
}

type describePlacementGroupsOutput struct{ PlacementGroups []struct{} }

func (a *api) describePlacementGroups() awsfront.Spec[describePlacementGroupsInput, describePlacementGroupsOutput] {
	return awsfront.Spec[describePlacementGroupsInput, describePlacementGroupsOutput]{
		Do: func(_ context.Context, _ *awsfront.Call, in *describePlacementGroupsInput) (*describePlacementGroupsOutput, error) {
			asked := append(append([]string{}, in.GroupIDs...), in.GroupNames...)
			return none(paged{filtered: in.filtered}, &describePlacementGroupsOutput{[]struct{}{}}, "InvalidPlacementGroup.Unknown", "Placement Group", asked)
		},
	}
}

type describeCapacityReservationsInput struct {
	paged
	CapacityReservationIDs []string
}

type describeCapacityReservationsOutput struct{ CapacityReservations []struct{} }

func (a *api) describeCapacityReservations() awsfront.Spec[describeCapacityReservationsInput, describeCapacityReservationsOutput] {
	return awsfront.Spec[describeCapacityReservationsInput, describeCapacityReservationsOutput]{
		Do: func(_ context.Context, _ *awsfront.Call, in *describeCapacityReservationsInput) (*describeCapacityReservationsOutput, error) {
			return none(in.paged, &describeCapacityReservationsOutput{[]struct{}{}}, "InvalidCapacityReservationId.NotFound", "capacity reservation", in.CapacityReservationIDs)
		},
	}
}

// describeSpotPriceHistoryInput names instance types, zones and times, for none of which there are prices.
type describeSpotPriceHistoryInput struct {
	paged
	AvailabilityZone    string
	AvailabilityZoneID  string
	InstanceTypes       []string
	ProductDescriptions []string
	StartTime, EndTime  *time.Time
}

type describeSpotPriceHistoryOutput struct{ SpotPriceHistory []struct{} }

func (a *api) describeSpotPriceHistory() awsfront.Spec[describeSpotPriceHistoryInput, describeSpotPriceHistoryOutput] {
	return awsfront.Spec[describeSpotPriceHistoryInput, describeSpotPriceHistoryOutput]{
		Do: func(_ context.Context, _ *awsfront.Call, in *describeSpotPriceHistoryInput) (*describeSpotPriceHistoryOutput, error) {
			return none(in.paged, &describeSpotPriceHistoryOutput{[]struct{}{}}, "", "", nil)
		},
	}
}

type addressesAttributeInput struct {
	AllocationIDs []string
	Attribute     string
	MaxResults    *int32
	NextToken     string
	DryRun        bool
}

type addressesAttributeOutput struct{ Addresses []struct{} }

// describeAddressesAttribute lists the domain names of addresses. No address has a domain name.
func (a *api) describeAddressesAttribute() awsfront.Spec[addressesAttributeInput, addressesAttributeOutput] {
	return awsfront.Spec[addressesAttributeInput, addressesAttributeOutput]{
		Do: func(ctx context.Context, _ *awsfront.Call, in *addressesAttributeInput) (*addressesAttributeOutput, error) {
			if err := only("attribute", in.Attribute, "domain-name"); err != nil {
				return nil, err
			}
			for _, id := range in.AllocationIDs {
				if _, err := a.addresses().get(ctx, id); err != nil {
					return nil, err
				}
			}
			page := paged{filtered{in.DryRun, []ec2filter.Filter{}}, in.MaxResults, in.NextToken}
			return none(page, &addressesAttributeOutput{[]struct{}{}}, "", "", nil)
		},
	}
}
