// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
)

// attachments is the lock under which gateways are attached and detached.
const attachments = "attachments of internet gateways"

// keptGateway is an internet gateway as it is kept.
type keptGateway struct {
	// VPC is the id of the VPC that the gateway is attached to.
	VPC string `json:"vpc,omitempty"`
}

func (a *api) internetGateways() records[keptGateway] {
	return records[keptGateway]{api: a, kind: ec2id.InternetGateway, of: awsrecord.Kind[keptGateway]{Type: "internet-gateway"}}
}

func (a *api) registerInternetGateways(f *awsfront.Front) {
	register(a, f, "AttachInternetGateway", a.attachInternetGateway())
	register(a, f, "CreateInternetGateway", a.createInternetGateway())
	register(a, f, "DeleteInternetGateway", a.deleteInternetGateway())
	register(a, f, "DescribeInternetGateways", a.describeInternetGateways())
	register(a, f, "DetachInternetGateway", a.detachInternetGateway())
	a.tagged(a.internetGateways().tagger("internet-gateway", func(_ *awsfront.Call, r *record[keptGateway]) map[string][]string {
		return map[string][]string{"ec2:InternetGatewayID": {r.ID}}
	}))
	a.vpcUsers = append(a.vpcUsers, func(ctx context.Context, vpc string) ([]string, error) {
		gateway, err := a.gatewayOf(ctx, vpc)
		if gateway == "" {
			return nil, err
		}
		return []string{gateway}, nil
	})
}

// gatewayOf is the internet gateway that is attached to a VPC, if there is one.
func (a *api) gatewayOf(ctx context.Context, vpc string) (string, error) {
	all, err := a.internetGateways().list(ctx)
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
	InternetGatewayID string
	OwnerID           string
	Attachments       []gatewayAttachment
	Tags              []awstag.Tag
}

type gatewayAttachment struct{ VpcID, State string }

func showGateway(call *awsfront.Call, r *record[keptGateway]) internetGateway {
	shown := internetGateway{InternetGatewayID: r.ID, OwnerID: call.Caller.Account(), Attachments: []gatewayAttachment{}, Tags: awsresource.ShownTags(r.Tags)}
	if r.Data.VPC != "" {
		shown.Attachments = append(shown.Attachments, gatewayAttachment{r.Data.VPC, "available"})
	}
	return shown
}

type createInternetGatewayInput struct {
	TagSpecifications []tagSpecification
	DryRun            bool
}

type createInternetGatewayOutput struct{ InternetGateway *internetGateway }

func (a *api) createInternetGateway() awsfront.Spec[createInternetGatewayInput, createInternetGatewayOutput] {
	return awsfront.Spec[createInternetGatewayInput, createInternetGatewayOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *createInternetGatewayInput) ([]awsfront.Target, error) {
			return a.aboutNew(call, "internet-gateway", in.TagSpecifications, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *createInternetGatewayInput) (*createInternetGatewayOutput, error) {
			tags, err := readTags(in.TagSpecifications, "internet-gateway")
			if err != nil {
				return nil, err
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			made, err := a.internetGateways().create(ctx, keptGateway{}, tags["internet-gateway"], awsresource.Token{})
			if err != nil {
				return nil, err
			}
			shown := showGateway(call, made)
			return &createInternetGatewayOutput{&shown}, nil
		},
	}
}

type describeInternetGatewaysInput struct {
	paged
	InternetGatewayIDs []string
}

type describeInternetGatewaysOutput struct {
	InternetGateways []internetGateway
	NextToken        string
}

func (a *api) describeInternetGateways() awsfront.Spec[describeInternetGatewaysInput, describeInternetGatewaysOutput] {
	gateways := noun[internetGateway]{
		kind: ec2id.InternetGateway, id: func(g *internetGateway) string { return g.InternetGatewayID }, tags: func(g *internetGateway) map[string]string { return awsresource.TagMap(g.Tags) },
		rules: ec2filter.Rules{Names: []string{"attachment.state", "attachment.vpc-id", "internet-gateway-id", "owner-id"}},
		values: func(g *internetGateway, name string) (values []string) {
			for _, at := range g.Attachments {
				switch name {
				case "attachment.state":
					return []string{at.State}
				case "attachment.vpc-id":
					return []string{at.VpcID}
				}
			}
			switch name {
			case "internet-gateway-id":
				return []string{g.InternetGatewayID}
			case "owner-id":
				return []string{g.OwnerID}
			}
			return nil
		},
	}
	return awsfront.Spec[describeInternetGatewaysInput, describeInternetGatewaysOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeInternetGatewaysInput) (*describeInternetGatewaysOutput, error) {
			all, err := a.internetGateways().list(ctx)
			if err != nil {
				return nil, err
			}
			shown := make([]internetGateway, 0, len(all))
			for i := range all {
				shown = append(shown, showGateway(call, &all[i]))
			}
			out := &describeInternetGatewaysOutput{}
			out.InternetGateways, out.NextToken, err = choose(a, call, gateways, shown, in.InternetGatewayIDs, in.paged)
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

func (a *api) aboutGateway(ctx context.Context, call *awsfront.Call, in *gatewayInput) ([]awsfront.Target, error) {
	gateway, err := a.about(ctx, call, ec2id.InternetGateway, in.InternetGatewayID)
	if err != nil {
		return nil, err
	}
	vpc, err := a.about(ctx, call, ec2id.VPC, in.VpcID)
	return append(gateway, vpc...), err
}

func (a *api) attachInternetGateway() awsfront.Spec[gatewayInput, struct{}] {
	return awsfront.Spec[gatewayInput, struct{}]{
		About: a.aboutGateway,
		Do: func(ctx context.Context, _ *awsfront.Call, in *gatewayInput) (*struct{}, error) {
			defer a.locks.Hold(in.VpcID)()
			defer a.locks.Hold(attachments)()
			gateway, err := a.internetGateways().get(ctx, in.InternetGatewayID)
			if err != nil {
				return nil, err
			}
			if _, err := a.vpc(ctx, in.VpcID); err != nil {
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
				return nil, awsfault.Errorf(invalidParameter, "Network %s already has an internet gateway attached", in.VpcID)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return nil, a.internetGateways().update(ctx, in.InternetGatewayID, func(r *record[keptGateway]) error { r.Data.VPC = in.VpcID; return nil })
		},
	}
}

func (a *api) detachInternetGateway() awsfront.Spec[gatewayInput, struct{}] {
	return awsfront.Spec[gatewayInput, struct{}]{
		About: a.aboutGateway,
		Do: func(ctx context.Context, _ *awsfront.Call, in *gatewayInput) (*struct{}, error) {
			defer a.locks.Hold(in.VpcID)()
			defer a.locks.Hold(attachments)()
			gateway, err := a.internetGateways().get(ctx, in.InternetGatewayID)
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
				return nil, awsfault.Errorf(dependencyViolated, "Network %s has some mapped public address(es). Please unmap those public address(es) before detaching the gateway.", in.VpcID)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return nil, a.internetGateways().update(ctx, in.InternetGatewayID, func(r *record[keptGateway]) error { r.Data.VPC = ""; return nil })
		},
	}
}

type deleteInternetGatewayInput struct {
	InternetGatewayID string
	DryRun            bool
}

func (a *api) deleteInternetGateway() awsfront.Spec[deleteInternetGatewayInput, struct{}] {
	return awsfront.Spec[deleteInternetGatewayInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteInternetGatewayInput) ([]awsfront.Target, error) {
			return a.about(ctx, call, ec2id.InternetGateway, in.InternetGatewayID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteInternetGatewayInput) (*struct{}, error) {
			defer a.locks.Hold(attachments)()
			gateway, err := a.internetGateways().get(ctx, in.InternetGatewayID)
			if err != nil {
				return nil, err
			}
			if gateway.Data.VPC != "" {
				return nil, depends("internetGateway", in.InternetGatewayID, []string{"it is attached to " + gateway.Data.VPC})
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return nil, a.internetGateways().remove(ctx, in.InternetGatewayID)
		},
	}
}
