// SPDX-License-Identifier: Apache-2.0

package ec2

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

func (a *api) natGateways() records[keptNAT] {
	return records[keptNAT]{
		api: a, kind: ec2id.NATGateway, of: awsrecord.Kind[keptNAT]{Type: "nat-gateway"}, vpc: func(n *keptNAT) string { return n.VPC },
	}
}

func (a *api) registerNATGateways(f *awsfront.Front) {
	register(a, f, "CreateNatGateway", a.createNATGateway())
	register(a, f, "DeleteNatGateway", a.deleteNATGateway())
	register(a, f, "DescribeNatGateways", a.describeNATGateways())
	gateways := a.natGateways()
	a.tagged(gateways.tagger("natgateway", func(call *awsfront.Call, r *record[keptNAT]) map[string][]string {
		return map[string][]string{"ec2:Vpc": {a.arn(call, "vpc/"+r.Data.VPC)}}
	}))
	a.subnetUsers = append(a.subnetUsers, func(ctx context.Context, subnet *v1alpha1.Subnet) (ids []string, err error) {
		all, err := gateways.list(ctx)
		for i := range all {
			if all[i].Data.Subnet == subnet.Name && all[i].Data.FailureCode == "" {
				ids = append(ids, all[i].ID)
			}
		}
		return ids, err
	})
	a.vpcLeavings = append(a.vpcLeavings, gateways.sweep)
}

// natGateway is a NAT gateway as EC2 shows it.
type natGateway struct {
	NatGatewayID        string
	State               string
	FailureCode         string
	FailureMessage      string
	ConnectivityType    string
	SubnetID            string
	VpcID               string
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

func showNAT(r *record[keptNAT]) natGateway {
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

func (a *api) describeNATGateways() awsfront.Spec[describeNATGatewaysInput, describeNATGatewaysOutput] {
	gateways := noun[natGateway]{
		kind: ec2id.NATGateway, id: func(n *natGateway) string { return n.NatGatewayID }, tags: func(n *natGateway) map[string]string { return awsresource.TagMap(n.Tags) },
		rules: ec2filter.Rules{Names: []string{"nat-gateway-id", "state", "subnet-id", "vpc-id"}},
		values: func(n *natGateway, name string) []string {
			switch name {
			case "nat-gateway-id":
				return []string{n.NatGatewayID}
			case "state":
				return []string{n.State}
			case "subnet-id":
				return []string{n.SubnetID}
			case "vpc-id":
				return []string{n.VpcID}
			}
			return nil
		},
	}
	return awsfront.Spec[describeNATGatewaysInput, describeNATGatewaysOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeNATGatewaysInput) (*describeNATGatewaysOutput, error) {
			all, err := a.natGateways().list(ctx)
			if err != nil {
				return nil, err
			}
			shown := make([]natGateway, 0, len(all))
			for i := range all {
				shown = append(shown, showNAT(&all[i]))
			}
			out := &describeNATGatewaysOutput{}
			page := paged{filtered{in.DryRun, in.Filter}, in.MaxResults, in.NextToken}
			out.NatGateways, out.NextToken, err = choose(a, call, gateways, shown, in.NatGatewayIDs, page)
			return out, err
		},
	}
}

type deleteNATGatewayInput struct {
	NatGatewayID string
	DryRun       bool
}

type deleteNATGatewayOutput struct{ NatGatewayID string }

func (a *api) deleteNATGateway() awsfront.Spec[deleteNATGatewayInput, deleteNATGatewayOutput] {
	return awsfront.Spec[deleteNATGatewayInput, deleteNATGatewayOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteNATGatewayInput) ([]awsfront.Target, error) {
			return a.about(ctx, call, ec2id.NATGateway, in.NatGatewayID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteNATGatewayInput) (*deleteNATGatewayOutput, error) {
			if _, err := a.natGateways().get(ctx, in.NatGatewayID); err != nil {
				return nil, err
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return &deleteNATGatewayOutput{in.NatGatewayID}, a.natGateways().remove(ctx, in.NatGatewayID)
		},
	}
}
