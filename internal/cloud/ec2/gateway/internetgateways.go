// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// attachments is the lock under which gateways are attached and detached.
const attachments = "attachments of internet gateways"

// keptGateway is an internet gateway as it is kept.
type keptGateway struct {
	// VPC is the id of the VPC that the gateway is attached to.
	VPC string `json:"vpc,omitempty"`
}

// InternetGateways are the records of internet gateways.
func (a *Actions) InternetGateways() ec2resource.Records[keptGateway] {
	return ec2resource.Records[keptGateway]{EC2: a.ec2, Kind: ec2id.InternetGateway, Of: awsrecord.Kind[keptGateway]{Type: "internet-gateway"}}
}

// RegisterInternetGateways adds the actions about them to the front.
func (a *Actions) RegisterInternetGateways(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "AttachInternetGateway", a.attachInternetGateway())
	ec2resource.Register(a.ec2, f, "CreateInternetGateway", a.createInternetGateway())
	ec2resource.Register(a.ec2, f, "DeleteInternetGateway", a.deleteInternetGateway())
	ec2resource.Register(a.ec2, f, "DescribeInternetGateways", a.describeInternetGateways())
	ec2resource.Register(a.ec2, f, "DetachInternetGateway", a.detachInternetGateway())
	a.ec2.Tagged(a.InternetGateways().Tagger("internet-gateway", func(_ *awsfront.Call, r *ec2resource.Record[keptGateway]) map[string][]string {
		return map[string][]string{"ec2:InternetGatewayID": {r.ID}}
	}))
	a.ec2.VPCUsers = append(a.ec2.VPCUsers, func(ctx context.Context, vpc string) ([]string, error) {
		gateway, err := a.gatewayOf(ctx, vpc)
		if gateway == "" {
			return nil, err
		}
		return []string{gateway}, nil
	})
}

// gatewayOf is the internet gateway that is attached to a VPC, if there is one.
func (a *Actions) gatewayOf(ctx context.Context, vpc string) (string, error) {
	all, err := a.InternetGateways().List(ctx)
	if err != nil {
		return "", err
	}
	for i := range all {
		if all[i].Data.VPC == vpc {
			return all[i].ID, nil
		}
	}
	return "", nil
}

// internetGateway is an internet gateway as EC2 shows it.
type internetGateway struct {
	InternetGatewayID string              `filter:"internet-gateway-id"`
	OwnerID           string              `filter:"owner-id"`
	Attachments       []gatewayAttachment `filter:"attachment."`
	Tags              []awstag.Tag
}

type gatewayAttachment struct {
	VpcID string `filter:"vpc-id"`
	State string `filter:"state"`
}

func showGateway(call *awsfront.Call, r *ec2resource.Record[keptGateway]) internetGateway {
	shown := internetGateway{InternetGatewayID: r.ID, OwnerID: call.Caller.Account(), Attachments: []gatewayAttachment{}, Tags: awsresource.ShownTags(r.Tags)}
	if r.Data.VPC != "" {
		shown.Attachments = append(shown.Attachments, gatewayAttachment{r.Data.VPC, "available"})
	}
	return shown
}

type createInternetGatewayInput struct {
	TagSpecifications []ec2resource.TagSpecification
	DryRun            bool
}

type createInternetGatewayOutput struct{ InternetGateway *internetGateway }

func (a *Actions) createInternetGateway() awsfront.Spec[createInternetGatewayInput, createInternetGatewayOutput] {
	return awsfront.Spec[createInternetGatewayInput, createInternetGatewayOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *createInternetGatewayInput) ([]awsfront.Target, error) {
			return a.ec2.AboutNew(call, "internet-gateway", in.TagSpecifications, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *createInternetGatewayInput) (*createInternetGatewayOutput, error) {
			tags, err := ec2resource.ReadTags(in.TagSpecifications, "internet-gateway")
			if err != nil {
				return nil, err
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			made, err := a.InternetGateways().Create(ctx, keptGateway{}, tags["internet-gateway"], awsresource.Token{})
			if err != nil {
				return nil, err
			}
			shown := showGateway(call, made)
			return &createInternetGatewayOutput{&shown}, nil
		},
	}
}

type describeInternetGatewaysInput struct {
	ec2resource.Paged
	InternetGatewayIDs []string
}

type describeInternetGatewaysOutput struct {
	InternetGateways []internetGateway
	NextToken        string
}

func (a *Actions) describeInternetGateways() awsfront.Spec[describeInternetGatewaysInput, describeInternetGatewaysOutput] {
	gateways := ec2resource.Noun[internetGateway]{
		Kind: ec2id.InternetGateway, ID: func(g *internetGateway) string { return g.InternetGatewayID }, Tags: func(g *internetGateway) map[string]string { return awsresource.TagMap(g.Tags) },
		Fields: awsresource.FiltersOf[internetGateway](),
	}
	return awsfront.Spec[describeInternetGatewaysInput, describeInternetGatewaysOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeInternetGatewaysInput) (*describeInternetGatewaysOutput, error) {
			all, err := a.InternetGateways().List(ctx)
			if err != nil {
				return nil, err
			}
			shown := make([]internetGateway, 0, len(all))
			for i := range all {
				shown = append(shown, showGateway(call, &all[i]))
			}
			out := &describeInternetGatewaysOutput{}
			out.InternetGateways, out.NextToken, err = ec2resource.Choose(a.ec2, call, gateways, shown, in.InternetGatewayIDs, in.Paged)
			return out, err
		},
	}
}

// gatewayInput is that of attaching and detaching.
type gatewayInput struct {
	InternetGatewayID string
	VpcID             string
	DryRun            bool
}

func (a *Actions) aboutGateway(ctx context.Context, call *awsfront.Call, in *gatewayInput) ([]awsfront.Target, error) {
	gateway, err := a.ec2.About(ctx, call, ec2id.InternetGateway, in.InternetGatewayID)
	if err != nil {
		return nil, err
	}
	vpc, err := a.ec2.About(ctx, call, ec2id.VPC, in.VpcID)
	return append(gateway, vpc...), err
}

func (a *Actions) attachInternetGateway() awsfront.Spec[gatewayInput, struct{}] {
	return awsfront.Spec[gatewayInput, struct{}]{
		About: a.aboutGateway,
		Do: func(ctx context.Context, _ *awsfront.Call, in *gatewayInput) (*struct{}, error) {
			defer a.ec2.Locks.Hold(in.VpcID)()
			defer a.ec2.Locks.Hold(attachments)()
			gateway, err := a.InternetGateways().Get(ctx, in.InternetGatewayID)
			if err != nil {
				return nil, err
			}
			if _, err := a.ec2.VPC(ctx, in.VpcID); err != nil {
				return nil, err
			}
			if gateway.Data.VPC != "" {
				return nil, awsfault.Errorf("Resource.AlreadyAssociated", "resource %s is already attached to network %s", in.InternetGatewayID, gateway.Data.VPC)
			}
			other, err := a.gatewayOf(ctx, in.VpcID)
			if err != nil {
				return nil, err
			}
			if other != "" {
				return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Network %s already has an internet gateway attached", in.VpcID)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return nil, a.InternetGateways().Update(ctx, in.InternetGatewayID, func(r *ec2resource.Record[keptGateway]) error { r.Data.VPC = in.VpcID; return nil })
		},
	}
}

func (a *Actions) detachInternetGateway() awsfront.Spec[gatewayInput, struct{}] {
	return awsfront.Spec[gatewayInput, struct{}]{
		About: a.aboutGateway,
		Do: func(ctx context.Context, _ *awsfront.Call, in *gatewayInput) (*struct{}, error) {
			defer a.ec2.Locks.Hold(in.VpcID)()
			defer a.ec2.Locks.Hold(attachments)()
			gateway, err := a.InternetGateways().Get(ctx, in.InternetGatewayID)
			if err != nil {
				return nil, err
			}
			if gateway.Data.VPC != in.VpcID {
				return nil, awsfault.Errorf("Gateway.NotAttached", "resource %s is not attached to network %s", in.InternetGatewayID, in.VpcID)
			}
			public, err := a.publicIn(ctx, in.VpcID)
			if err != nil {
				return nil, err
			}
			if public {
				return nil, awsfault.Errorf(ec2resource.DependencyViolated, "Network %s has some mapped public address(es). Please unmap those public address(es) before detaching the gateway.", in.VpcID)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return nil, a.InternetGateways().Update(ctx, in.InternetGatewayID, func(r *ec2resource.Record[keptGateway]) error { r.Data.VPC = ""; return nil })
		},
	}
}

type deleteInternetGatewayInput struct {
	InternetGatewayID string
	DryRun            bool
}

func (a *Actions) deleteInternetGateway() awsfront.Spec[deleteInternetGatewayInput, struct{}] {
	return awsfront.Spec[deleteInternetGatewayInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteInternetGatewayInput) ([]awsfront.Target, error) {
			return a.ec2.About(ctx, call, ec2id.InternetGateway, in.InternetGatewayID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteInternetGatewayInput) (*struct{}, error) {
			defer a.ec2.Locks.Hold(attachments)()
			gateway, err := a.InternetGateways().Get(ctx, in.InternetGatewayID)
			if err != nil {
				return nil, err
			}
			if gateway.Data.VPC != "" {
				return nil, ec2resource.Depends("internetGateway", in.InternetGatewayID, []string{"it is attached to " + gateway.Data.VPC})
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return nil, a.InternetGateways().Remove(ctx, in.InternetGatewayID)
		},
	}
}
