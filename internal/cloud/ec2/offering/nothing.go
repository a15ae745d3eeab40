// SPDX-License-Identifier: Apache-2.0

package offering

import (
	"context"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// RegisterNothing adds the actions that list what there never is: tools look for it, and go on.
func (a *Actions) RegisterNothing(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "DescribeCapacityReservations", a.describeCapacityReservations())
	ec2resource.Register(a.ec2, f, "DescribeManagedPrefixLists", a.describeManagedPrefixLists())
	ec2resource.Register(a.ec2, f, "DescribePlacementGroups", a.describePlacementGroups())
	ec2resource.Register(a.ec2, f, "DescribePrefixLists", a.describePrefixLists())
	ec2resource.Register(a.ec2, f, "DescribeVpcEndpoints", a.describeVpcEndpoints())
}

type describeVpcEndpointsInput struct {
	ec2resource.Paged
	VpcEndpointIDs []string
}

type describeVpcEndpointsOutput struct{ VpcEndpoints []struct{} }

func (a *Actions) describeVpcEndpoints() awsfront.Spec[describeVpcEndpointsInput, describeVpcEndpointsOutput] {
	return awsfront.Spec[describeVpcEndpointsInput, describeVpcEndpointsOutput]{
		Do: func(_ context.Context, _ *awsfront.Call, in *describeVpcEndpointsInput) (*describeVpcEndpointsOutput, error) {
			return ec2resource.None(in.Paged, &describeVpcEndpointsOutput{[]struct{}{}}, "InvalidVpcEndpointId.NotFound", "Vpc Endpoint Id", in.VpcEndpointIDs)
		},
	}
}

type describePrefixListsInput struct {
	ec2resource.Paged
	PrefixListIDs []string
}

type describePrefixListsOutput struct{ PrefixLists []struct{} }

func (a *Actions) describePrefixLists() awsfront.Spec[describePrefixListsInput, describePrefixListsOutput] {
	return awsfront.Spec[describePrefixListsInput, describePrefixListsOutput]{
		Do: func(_ context.Context, _ *awsfront.Call, in *describePrefixListsInput) (*describePrefixListsOutput, error) {
			return ec2resource.None(in.Paged, &describePrefixListsOutput{[]struct{}{}}, "InvalidPrefixListId.NotFound", "prefix list ID", in.PrefixListIDs)
		},
	}
}

func (a *Actions) describeManagedPrefixLists() awsfront.Spec[describePrefixListsInput, describePrefixListsOutput] {
	return awsfront.Spec[describePrefixListsInput, describePrefixListsOutput]{
		Do: func(_ context.Context, _ *awsfront.Call, in *describePrefixListsInput) (*describePrefixListsOutput, error) {
			return ec2resource.None(in.Paged, &describePrefixListsOutput{[]struct{}{}}, "InvalidPrefixListID.NotFound", "prefix list ID", in.PrefixListIDs)
		},
	}
}

type describePlacementGroupsInput struct {
	ec2resource.Filtered
	GroupIDs   []string
	GroupNames []string
}

type describePlacementGroupsOutput struct{ PlacementGroups []struct{} }

func (a *Actions) describePlacementGroups() awsfront.Spec[describePlacementGroupsInput, describePlacementGroupsOutput] {
	return awsfront.Spec[describePlacementGroupsInput, describePlacementGroupsOutput]{
		Do: func(_ context.Context, _ *awsfront.Call, in *describePlacementGroupsInput) (*describePlacementGroupsOutput, error) {
			asked := append(append([]string{}, in.GroupIDs...), in.GroupNames...)
			return ec2resource.None(ec2resource.Paged{Filtered: in.Filtered}, &describePlacementGroupsOutput{[]struct{}{}}, "InvalidPlacementGroup.Unknown", "Placement Group", asked)
		},
	}
}

type describeCapacityReservationsInput struct {
	ec2resource.Paged
	CapacityReservationIDs []string
}

type describeCapacityReservationsOutput struct{ CapacityReservations []struct{} }

func (a *Actions) describeCapacityReservations() awsfront.Spec[describeCapacityReservationsInput, describeCapacityReservationsOutput] {
	return awsfront.Spec[describeCapacityReservationsInput, describeCapacityReservationsOutput]{
		Do: func(_ context.Context, _ *awsfront.Call, in *describeCapacityReservationsInput) (*describeCapacityReservationsOutput, error) {
			return ec2resource.None(in.Paged, &describeCapacityReservationsOutput{[]struct{}{}}, "InvalidCapacityReservationId.NotFound", "capacity reservation", in.CapacityReservationIDs)
		},
	}
}
