// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// keptNAT is a NAT gateway as it is kept.
type keptNAT struct {
	VPC          string `json:"vpc"`
	Subnet       string `json:"subnet"`
	Connectivity string `json:"connectivity"` // public or private
	Interface    string `json:"interface"`
	PrivateIP    string `json:"privateIP"`
	// Address is the elastic address of a public one.
	Address     string `json:"address,omitempty"`
	PublicIP    string `json:"publicIP,omitempty"`
	Association string `json:"association,omitempty"`
	// FailureCode is why it never came to be. It has no addresses then.
	FailureCode    string `json:"failureCode,omitempty"`
	FailureMessage string `json:"failureMessage,omitempty"`
}

// NatGateways are the records of NAT gateways.
func (a *Actions) NatGateways() ec2resource.Records[keptNAT] {
	return ec2resource.Records[keptNAT]{
		EC2: a.ec2, Kind: ec2id.NATGateway, Of: awsrecord.Kind[keptNAT]{Type: "nat-gateway"}, VPC: func(n *keptNAT) string { return n.VPC },
	}
}

// RegisterNATGateways adds the actions about them to the front.
func (a *Actions) RegisterNATGateways(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "CreateNatGateway", a.createNATGateway())
	ec2resource.Register(a.ec2, f, "DeleteNatGateway", a.deleteNATGateway())
	ec2resource.Register(a.ec2, f, "DescribeNatGateways", a.describeNATGateways())
	gateways := a.NatGateways()
	a.ec2.Tagged(gateways.Tagger("natgateway", func(call *awsfront.Call, r *ec2resource.Record[keptNAT]) map[string][]string {
		return map[string][]string{"ec2:Vpc": {a.ec2.ARN(call, "vpc/"+r.Data.VPC)}}
	}))
	a.ec2.SubnetUsers = append(a.ec2.SubnetUsers, func(ctx context.Context, subnet *v1alpha1.Subnet) (ids []string, err error) {
		all, err := gateways.List(ctx)
		for i := range all {
			if all[i].Data.Subnet == subnet.Name && all[i].Data.FailureCode == "" {
				ids = append(ids, all[i].ID)
			}
		}
		return ids, err
	})
	a.ec2.VPCLeavings = append(a.ec2.VPCLeavings, gateways.Sweep)
}

// natGateway is a NAT gateway as EC2 shows it.
type natGateway struct {
	NatGatewayID        string `filter:"nat-gateway-id"`
	State               string `filter:"state"`
	FailureCode         string
	FailureMessage      string
	ConnectivityType    string
	SubnetID            string `filter:"subnet-id"`
	VpcID               string `filter:"vpc-id"`
	NatGatewayAddresses []natAddress
	CreateTime          time.Time
	Tags                []awstag.Tag
}

type natAddress struct {
	AllocationID       string
	AssociationID      string
	IsPrimary          bool
	NetworkInterfaceID string
	PrivateIP          string
	PublicIP           string
	Status             string
}

func showNAT(r *ec2resource.Record[keptNAT]) natGateway {
	d := r.Data
	shown := natGateway{
		NatGatewayID: r.ID, State: "available", FailureCode: d.FailureCode, FailureMessage: d.FailureMessage, ConnectivityType: d.Connectivity,
		SubnetID: d.Subnet, VpcID: d.VPC, CreateTime: r.Created, Tags: awsresource.ShownTags(r.Tags),
	}
	address := natAddress{
		AllocationID: d.Address, AssociationID: d.Association, IsPrimary: true, NetworkInterfaceID: d.Interface, PrivateIP: d.PrivateIP, PublicIP: d.PublicIP, Status: "succeeded",
	}
	if d.FailureCode != "" {
		shown.State, address = "failed", natAddress{AllocationID: d.Address, IsPrimary: true, Status: "failed"}
	}
	shown.NatGatewayAddresses = []natAddress{address}
	return shown
}

type describeNATGatewaysInput struct {
	Filter        []ec2filter.Filter
	NatGatewayIDs []string
	MaxResults    *int32
	NextToken     string
	DryRun        bool
}

type describeNATGatewaysOutput struct {
	NatGateways []natGateway
	NextToken   string
}

func (a *Actions) describeNATGateways() awsfront.Spec[describeNATGatewaysInput, describeNATGatewaysOutput] {
	gateways := ec2resource.Noun[natGateway]{
		Kind: ec2id.NATGateway, ID: func(n *natGateway) string { return n.NatGatewayID }, Tags: func(n *natGateway) map[string]string { return awsresource.TagMap(n.Tags) },
		Fields: awsresource.FiltersOf[natGateway](),
	}
	return awsfront.Spec[describeNATGatewaysInput, describeNATGatewaysOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeNATGatewaysInput) (*describeNATGatewaysOutput, error) {
			all, err := a.NatGateways().List(ctx)
			if err != nil {
				return nil, err
			}
			shown := make([]natGateway, 0, len(all))
			for i := range all {
				shown = append(shown, showNAT(&all[i]))
			}
			out := &describeNATGatewaysOutput{}
			page := ec2resource.Paged{Filtered: ec2resource.Filtered{DryRun: in.DryRun, Filters: in.Filter}, MaxResults: in.MaxResults, NextToken: in.NextToken}
			out.NatGateways, out.NextToken, err = ec2resource.Choose(a.ec2, call, gateways, shown, in.NatGatewayIDs, page)
			return out, err
		},
	}
}

type deleteNATGatewayInput struct {
	NatGatewayID string
	DryRun       bool
}

type deleteNATGatewayOutput struct{ NatGatewayID string }

func (a *Actions) deleteNATGateway() awsfront.Spec[deleteNATGatewayInput, deleteNATGatewayOutput] {
	return awsfront.Spec[deleteNATGatewayInput, deleteNATGatewayOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteNATGatewayInput) ([]awsfront.Target, error) {
			return a.ec2.About(ctx, call, ec2id.NATGateway, in.NatGatewayID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteNATGatewayInput) (*deleteNATGatewayOutput, error) {
			if _, err := a.NatGateways().Get(ctx, in.NatGatewayID); err != nil {
				return nil, err
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return &deleteNATGatewayOutput{in.NatGatewayID}, a.NatGateways().Remove(ctx, in.NatGatewayID)
		},
	}
}
