// SPDX-License-Identifier: Apache-2.0

package routetable

import (
	"cmp"
	"context"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/association"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/instance"
)

// tableType is the type of records of route tables.
const tableType = "route-table"

// KeptTable is a route table as it is kept. The local route is not: every table has it.
type KeptTable struct {
	VPC    string      `json:"vpc"`
	Routes []KeptRoute `json:"routes,omitempty"`
}

// KeptRoute is a route, to one target.
type KeptRoute struct {
	Destination string `json:"destination"`
	Gateway     string `json:"gateway,omitempty"`
	NATGateway  string `json:"natGateway,omitempty"`
	Instance    string `json:"instance,omitempty"`
}

func (a *Actions) routeTables() ec2resource.Records[KeptTable] {
	return ec2resource.Records[KeptTable]{
		EC2: a.ec2, Kind: ec2id.RouteTable, Of: awsrecord.Kind[KeptTable]{Type: tableType}, VPC: func(t *KeptTable) string { return t.VPC },
		Implied: func(ctx context.Context) ([]ec2resource.Record[KeptTable], error) {
			all, err := a.associations.Associations(ctx)
			var tables []ec2resource.Record[KeptTable]
			for vpc, of := range all {
				if !of.NoDefaultTable {
					tables = append(tables, ec2resource.Record[KeptTable]{ID: association.DefaultTable(vpc), Data: KeptTable{VPC: vpc}})
				}
			}
			return tables, err
		},
	}
}

// Register adds the actions to the front.
func (a *Actions) Register(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "AssociateRouteTable", a.associateRouteTable())
	ec2resource.Register(a.ec2, f, "CreateRoute", a.createRoute())
	ec2resource.Register(a.ec2, f, "CreateRouteTable", a.createRouteTable())
	ec2resource.Register(a.ec2, f, "DeleteRoute", a.deleteRoute())
	ec2resource.Register(a.ec2, f, "DeleteRouteTable", a.deleteRouteTable())
	ec2resource.Register(a.ec2, f, "DescribeRouteTables", a.describeRouteTables())
	ec2resource.Register(a.ec2, f, "DisassociateRouteTable", a.disassociateRouteTable())
	ec2resource.Register(a.ec2, f, "ReplaceRoute", a.replaceRoute())
	ec2resource.Register(a.ec2, f, "ReplaceRouteTableAssociation", a.replaceRouteTableAssociation())
	tables := a.routeTables()
	a.ec2.Tagged(tables.Tagger("route-table", func(call *awsfront.Call, r *ec2resource.Record[KeptTable]) map[string][]string {
		return map[string][]string{"ec2:RouteTableID": {r.ID}, "ec2:Vpc": {a.ec2.ARN(call, "vpc/"+r.Data.VPC)}}
	}))
	a.ec2.VPCUsers = append(a.ec2.VPCUsers, func(ctx context.Context, vpc string) (ids []string, err error) {
		all, err := tables.List(ctx)
		if err != nil {
			return nil, err
		}
		tied, err := a.associations.Associations(ctx)
		if err != nil {
			return nil, err
		}
		for i := range all {
			if t := &all[i]; t.Data.VPC == vpc && tied[vpc].Main.To != t.ID {
				ids = append(ids, t.ID)
			}
		}
		return ids, nil
	})
	a.ec2.VPCLeavings = append(a.ec2.VPCLeavings, tables.Sweep, a.associations.SweepAssociations)
}

// routeTable is a route table as EC2 shows it.
type routeTable struct {
	RouteTableID    string             `filter:"route-table-id"`
	VpcID           string             `filter:"vpc-id"`
	OwnerID         string             `filter:"owner-id"`
	Routes          []route            `filter:"route."`
	Associations    []routeAssociation `filter:"association."`
	PropagatingVgws []struct{ GatewayID string }
	Tags            []awstag.Tag
}

type route struct {
	destination        `filter:""`
	GatewayID          string `filter:"gateway-id,omitempty"`
	NatGatewayID       string `filter:"nat-gateway-id,omitempty"`
	InstanceID         string `filter:"instance-id,omitempty"`
	InstanceOwnerID    string
	NetworkInterfaceID string
	Origin             string `filter:"origin"`
	State              string `filter:"state"`
}

type routeAssociation struct {
	RouteTableAssociationID string `filter:"route-table-association-id"`
	RouteTableID            string `filter:"route-table-id"`
	SubnetID                string `filter:"subnet-id,omitempty"`
	Main                    bool   `filter:"main"`
	AssociationState        associationState
}

type associationState struct{ State string }

type describeRouteTablesInput struct {
	ec2resource.Paged
	RouteTableIDs []string
}

type describeRouteTablesOutput struct {
	RouteTables []routeTable
	NextToken   string
}

func (a *Actions) describeRouteTables() awsfront.Spec[describeRouteTablesInput, describeRouteTablesOutput] {
	return awsfront.Spec[describeRouteTablesInput, describeRouteTablesOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeRouteTablesInput) (*describeRouteTablesOutput, error) {
			all, err := a.routeTables().List(ctx)
			if err != nil {
				return nil, err
			}
			shown, err := a.showRouteTables(ctx, call, all)
			if err != nil {
				return nil, err
			}
			out := &describeRouteTablesOutput{}
			out.RouteTables, out.NextToken, err = ec2resource.Choose(a.ec2, call, routeTableNoun(), shown, in.RouteTableIDs, in.Paged)
			return out, err
		},
	}
}

func routeTableNoun() ec2resource.Noun[routeTable] {
	return ec2resource.Noun[routeTable]{
		Kind: ec2id.RouteTable, ID: func(t *routeTable) string { return t.RouteTableID }, Tags: func(t *routeTable) map[string]string { return awsresource.TagMap(t.Tags) },
		Fields: awsresource.FiltersOf[routeTable](),
		Rules: ec2filter.Rules{Names: []string{ // no route leads there
			"association.gateway-id", "route.destination-prefix-list-id", "route.egress-only-internet-gateway-id", "route.transit-gateway-id", "route.vpc-peering-connection-id",
		}},
	}
}

// showRouteTables shows tables with their associations, and routes with whether their target is there.
func (a *Actions) showRouteTables(ctx context.Context, call *awsfront.Call, all []ec2resource.Record[KeptTable]) ([]routeTable, error) {
	tied, err := a.associations.Associations(ctx)
	if err != nil {
		return nil, err
	}
	vpcs, err := a.ec2.VPCs(ctx)
	if err != nil {
		return nil, err
	}
	reached, err := a.targetsThere(ctx)
	if err != nil {
		return nil, err
	}
	shown := make([]routeTable, 0, len(all))
	for i := range all {
		r := &all[i]
		vpc := vpcs[r.Data.VPC]
		if vpc == nil {
			continue // it went between two reads
		}
		t := routeTable{
			RouteTableID: r.ID, VpcID: r.Data.VPC, OwnerID: call.Caller.Account(), Tags: awsresource.ShownTags(r.Tags), Associations: []routeAssociation{}, PropagatingVgws: []struct{ GatewayID string }{},
			Routes: []route{{destination: destination{DestinationCidrBlock: vpc.Spec.CIDRBlock}, GatewayID: "local", Origin: "CreateRouteTable", State: "active"}},
		}
		for _, k := range r.Data.Routes {
			one := route{destination: k.shown(), GatewayID: k.Gateway, NatGatewayID: k.NATGateway, InstanceID: k.Instance, Origin: "CreateRoute", State: "blackhole"}
			if k.Instance != "" {
				one.InstanceOwnerID, one.NetworkInterfaceID = call.Caller.Account(), instance.InterfaceOf(k.Instance)
			}
			if reached[target{r.Data.VPC, cmp.Or(k.Gateway, k.NATGateway, k.Instance)}] {
				one.State = "active"
			}
			t.Routes = append(t.Routes, one)
		}
		if of := tied[r.Data.VPC]; of != nil {
			t.Associations = ofTable(of, r.ID)
		}
		shown = append(shown, t)
	}
	return shown, nil
}

// ofTable are the associations of a route table.
func ofTable(s *association.Associations, id string) []routeAssociation {
	all := []routeAssociation{}
	if s.Main.To == id {
		all = append(all, routeAssociation{RouteTableAssociationID: s.Main.ID, RouteTableID: id, Main: true, AssociationState: associationState{"associated"}})
	}
	for subnet, to := range s.Tables {
		if to.To == id {
			all = append(all, routeAssociation{RouteTableAssociationID: to.ID, RouteTableID: id, SubnetID: subnet, AssociationState: associationState{"associated"}})
		}
	}
	slices.SortFunc(all, func(a, b routeAssociation) int { return cmp.Compare(a.SubnetID, b.SubnetID) })
	return all
}

// target is what routes of a VPC lead to.
type target struct{ vpc, id string }

// targetsThere are all gateways and instances that a route may lead to.
func (a *Actions) targetsThere(ctx context.Context) (map[target]bool, error) {
	there := map[target]bool{}
	gateways, err := a.gateways.InternetGateways().List(ctx)
	if err != nil {
		return nil, err
	}
	for i := range gateways {
		there[target{gateways[i].Data.VPC, gateways[i].ID}] = true
	}
	nats, err := a.gateways.NatGateways().List(ctx)
	if err != nil {
		return nil, err
	}
	for i := range nats {
		there[target{nats[i].Data.VPC, nats[i].ID}] = nats[i].Data.FailureCode == ""
	}
	var machines v1alpha1.MachineList
	if err := a.ec2.List(ctx, &machines); err != nil {
		return nil, err
	}
	subnets, err := a.ec2.SubnetsOf(ctx, "")
	if err != nil {
		return nil, err
	}
	of := map[string]string{}
	for i := range subnets {
		of[subnets[i].Name] = subnets[i].Spec.VPCID
	}
	for i := range machines.Items {
		there[target{of[string(machines.Items[i].Spec.SubnetID)], machines.Items[i].Name}] = true
	}
	return there, nil
}

type createRouteTableInput struct {
	VpcID             string
	ClientToken       string
	TagSpecifications []ec2resource.TagSpecification
	DryRun            bool
}

type createRouteTableOutput struct {
	RouteTable  *routeTable
	ClientToken string
}

func (a *Actions) createRouteTable() awsfront.Spec[createRouteTableInput, createRouteTableOutput] {
	return awsfront.Spec[createRouteTableInput, createRouteTableOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createRouteTableInput) ([]awsfront.Target, error) {
			return a.ec2.AboutNewIn(ctx, call, "route-table", in.VpcID, in.TagSpecifications)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *createRouteTableInput) (*createRouteTableOutput, error) {
			tags, err := ec2resource.ReadTags(in.TagSpecifications, "route-table")
			if err != nil {
				return nil, err
			}
			key, err := ec2resource.TokenOf(call, in.ClientToken)
			if err != nil {
				return nil, err
			}
			defer a.ec2.Locks.Hold(in.VpcID)()
			if _, err := a.ec2.VPC(ctx, in.VpcID); err != nil {
				return nil, err
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			made, err := a.routeTables().Create(ctx, KeptTable{VPC: in.VpcID}, tags["route-table"], key)
			if err != nil {
				return nil, err
			}
			shown, err := a.showRouteTables(ctx, call, []ec2resource.Record[KeptTable]{*made})
			if err != nil || len(shown) == 0 {
				return nil, cmp.Or(err, error(ec2id.VPC.NotFound(in.VpcID)))
			}
			return &createRouteTableOutput{&shown[0], in.ClientToken}, nil
		},
	}
}

type deleteRouteTableInput struct {
	RouteTableID string
	DryRun       bool
}

func (a *Actions) deleteRouteTable() awsfront.Spec[deleteRouteTableInput, struct{}] {
	return awsfront.Spec[deleteRouteTableInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteRouteTableInput) ([]awsfront.Target, error) {
			return a.ec2.About(ctx, call, ec2id.RouteTable, in.RouteTableID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteRouteTableInput) (*struct{}, error) {
			found, release, err := a.routeTables().Hold(ctx, in.RouteTableID)
			if err != nil {
				return nil, err
			}
			defer release()
			tied, err := a.associations.Associations(ctx)
			if err != nil {
				return nil, err
			}
			var ids []string
			if of := tied[found.Data.VPC]; of != nil {
				for _, s := range ofTable(of, found.ID) {
					ids = append(ids, s.RouteTableAssociationID)
				}
			}
			if len(ids) > 0 {
				return nil, ec2resource.Depends("routeTable", found.ID, ids)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			if found.ID == association.DefaultTable(found.Data.VPC) {
				if err := a.associations.Associate(ctx, found.Data.VPC, func(s *association.Associations) error { s.NoDefaultTable = true; return nil }); err != nil {
					return nil, err
				}
			}
			return nil, a.routeTables().Remove(ctx, found.ID)
		},
	}
}

// networksDiffer says that a route table and what it is to be tied to, or to lead to, are of different VPCs.
func networksDiffer(table, what, id string) error {
	return awsfault.Errorf(ec2resource.InvalidParameter, "route table %s and %s %s belong to different networks", table, what, id)
}
