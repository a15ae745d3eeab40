// SPDX-License-Identifier: Apache-2.0

package ec2

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
)

// keptTable is a route table as it is kept. The local route is not: every table has it.
type keptTable struct {
	VPC    string      `json:"vpc"`
	Routes []keptRoute `json:"routes,omitempty"`
}

// keptRoute is a route, to one target.
type keptRoute struct {
	Destination string `json:"destination"`
	Gateway     string `json:"gateway,omitempty"`
	NATGateway  string `json:"natGateway,omitempty"`
	Instance    string `json:"instance,omitempty"`
}

func (a *api) routeTables() records[keptTable] {
	return records[keptTable]{
		api: a, kind: ec2id.RouteTable, of: awsrecord.Kind[keptTable]{Type: "route-table"}, vpc: func(t *keptTable) string { return t.VPC },
		implied: func(ctx context.Context) ([]record[keptTable], error) {
			all, err := a.associations(ctx)
			var tables []record[keptTable]
			for vpc, of := range all {
				if !of.NoDefaultTable {
					tables = append(tables, record[keptTable]{ID: defaultTable(vpc), Data: keptTable{VPC: vpc}})
				}
			}
			return tables, err
		},
	}
}

func (a *api) registerRouteTables(f *awsfront.Front) {
	register(a, f, "AssociateRouteTable", a.associateRouteTable())
	register(a, f, "CreateRoute", a.createRoute())
	register(a, f, "CreateRouteTable", a.createRouteTable())
	register(a, f, "DeleteRoute", a.deleteRoute())
	register(a, f, "DeleteRouteTable", a.deleteRouteTable())
	register(a, f, "DescribeRouteTables", a.describeRouteTables())
	register(a, f, "DisassociateRouteTable", a.disassociateRouteTable())
	register(a, f, "ReplaceRoute", a.replaceRoute())
	register(a, f, "ReplaceRouteTableAssociation", a.replaceRouteTableAssociation())
	tables := a.routeTables()
	a.tagged(tables.tagger("route-table", func(call *awsfront.Call, r *record[keptTable]) map[string][]string {
		return map[string][]string{"ec2:RouteTableID": {r.ID}, "ec2:Vpc": {a.arn(call, "vpc/"+r.Data.VPC)}}
	}))
	a.vpcUsers = append(a.vpcUsers, func(ctx context.Context, vpc string) (ids []string, err error) {
		all, err := tables.list(ctx)
		if err != nil {
			return nil, err
		}
		tied, err := a.associations(ctx)
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
	a.vpcLeavings = append(a.vpcLeavings, tables.sweep, a.sweepAssociations)
}

// routeTable is a route table as EC2 shows it.
type routeTable struct {
	RouteTableID    string
	VpcID           string
	OwnerID         string
	Routes          []route
	Associations    []routeAssociation
	PropagatingVgws []struct{ GatewayID string }
	Tags            []awstag.Tag
}

type route struct {
	destination
	GatewayID          string
	NatGatewayID       string
	InstanceID         string
	InstanceOwnerID    string
	NetworkInterfaceID string
	Origin             string
	State              string
}

type routeAssociation struct {
	RouteTableAssociationID string
	RouteTableID            string
	SubnetID                string
	Main                    bool
	AssociationState        associationState
}

type associationState struct{ State string }

type describeRouteTablesInput struct {
	paged
	RouteTableIDs []string
}

type describeRouteTablesOutput struct {
	RouteTables []routeTable
	NextToken   string
}

func (a *api) describeRouteTables() awsfront.Spec[describeRouteTablesInput, describeRouteTablesOutput] {
	return awsfront.Spec[describeRouteTablesInput, describeRouteTablesOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeRouteTablesInput) (*describeRouteTablesOutput, error) {
			all, err := a.routeTables().list(ctx)
			if err != nil {
				return nil, err
			}
			shown, err := a.showRouteTables(ctx, call, all)
			if err != nil {
				return nil, err
			}
			out := &describeRouteTablesOutput{}
			out.RouteTables, out.NextToken, err = choose(a, call, routeTableNoun(), shown, in.RouteTableIDs, in.paged)
			return out, err
		},
	}
}

func routeTableNoun() noun[routeTable] {
	return noun[routeTable]{
		kind: ec2id.RouteTable, id: func(t *routeTable) string { return t.RouteTableID }, tags: func(t *routeTable) map[string]string { return awsresource.TagMap(t.Tags) },
		rules: ec2filter.Rules{Names: []string{
			"association.gateway-id", "association.main", "association.route-table-association-id", "association.route-table-id", "association.subnet-id", "owner-id",
			"route-table-id", "route.destination-cidr-block", "route.destination-ipv6-cidr-block", "route.destination-prefix-list-id",
			"route.egress-only-internet-gateway-id", "route.gateway-id", "route.instance-id", "route.nat-gateway-id", "route.origin", "route.state",
			"route.transit-gateway-id", "route.vpc-peering-connection-id", "vpc-id",
		}},
		values: (*routeTable).values,
	}
}

func (t *routeTable) values(name string) (values []string) {
	for _, s := range t.Associations {
		values = append(values, map[string]string{
			"association.main": text(s.Main), "association.route-table-association-id": s.RouteTableAssociationID, "association.route-table-id": s.RouteTableID,
			"association.subnet-id": s.SubnetID,
		}[name])
	}
	for _, r := range t.Routes {
		values = append(values, map[string]string{
			"route.destination-cidr-block": r.DestinationCidrBlock, "route.destination-ipv6-cidr-block": r.DestinationIpv6CidrBlock, "route.gateway-id": r.GatewayID, "route.instance-id": r.InstanceID,
			"route.nat-gateway-id": r.NatGatewayID, "route.origin": r.Origin, "route.state": r.State,
		}[name])
	}
	values = append(values, map[string]string{"owner-id": t.OwnerID, "route-table-id": t.RouteTableID, "vpc-id": t.VpcID}[name])
	return slices.DeleteFunc(values, func(v string) bool { return v == "" })
}

// showRouteTables shows tables with their associations, and routes with whether their target is there.
func (a *api) showRouteTables(ctx context.Context, call *awsfront.Call, all []record[keptTable]) ([]routeTable, error) {
	tied, err := a.associations(ctx)
	if err != nil {
		return nil, err
	}
	vpcs, err := a.vpcs(ctx)
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
				one.InstanceOwnerID, one.NetworkInterfaceID = call.Caller.Account(), interfaceOf(k.Instance)
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
func ofTable(s *associations, id string) []routeAssociation {
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
func (a *api) targetsThere(ctx context.Context) (map[target]bool, error) {
	there := map[target]bool{}
	gateways, err := a.internetGateways().list(ctx)
	if err != nil {
		return nil, err
	}
	for i := range gateways {
		there[target{gateways[i].Data.VPC, gateways[i].ID}] = true
	}
	nats, err := a.natGateways().list(ctx)
	if err != nil {
		return nil, err
	}
	for i := range nats {
		there[target{nats[i].Data.VPC, nats[i].ID}] = nats[i].Data.FailureCode == ""
	}
	var machines v1alpha1.MachineList
	if err := a.list(ctx, &machines); err != nil {
		return nil, err
	}
	subnets, err := a.subnetsOf(ctx, "")
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
	TagSpecifications []tagSpecification
	DryRun            bool
}

type createRouteTableOutput struct {
	RouteTable  *routeTable
	ClientToken string
}

func (a *api) createRouteTable() awsfront.Spec[createRouteTableInput, createRouteTableOutput] {
	return awsfront.Spec[createRouteTableInput, createRouteTableOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createRouteTableInput) ([]awsfront.Target, error) {
			return a.aboutNewIn(ctx, call, "route-table", in.VpcID, in.TagSpecifications)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *createRouteTableInput) (*createRouteTableOutput, error) {
			tags, err := readTags(in.TagSpecifications, "route-table")
			if err != nil {
				return nil, err
			}
			key, err := tokenOf(call, in.ClientToken)
			if err != nil {
				return nil, err
			}
			defer a.locks.Hold(in.VpcID)()
			if _, err := a.vpc(ctx, in.VpcID); err != nil {
				return nil, err
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			made, err := a.routeTables().create(ctx, keptTable{VPC: in.VpcID}, tags["route-table"], key)
			if err != nil {
				return nil, err
			}
			shown, err := a.showRouteTables(ctx, call, []record[keptTable]{*made})
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

func (a *api) deleteRouteTable() awsfront.Spec[deleteRouteTableInput, struct{}] {
	return awsfront.Spec[deleteRouteTableInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteRouteTableInput) ([]awsfront.Target, error) {
			return a.about(ctx, call, ec2id.RouteTable, in.RouteTableID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteRouteTableInput) (*struct{}, error) {
			found, release, err := a.routeTables().hold(ctx, in.RouteTableID)
			if err != nil {
				return nil, err
			}
			defer release()
			tied, err := a.associations(ctx)
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
				return nil, depends("routeTable", found.ID, ids)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			if found.ID == defaultTable(found.Data.VPC) {
				if err := a.associate(ctx, found.Data.VPC, func(s *associations) error { s.NoDefaultTable = true; return nil }); err != nil {
					return nil, err
				}
			}
			return nil, a.routeTables().remove(ctx, found.ID)
		},
	}
}

// aboutNewIn is what a request makes in a VPC, and the VPC.
func (a *api) aboutNewIn(ctx context.Context, call *awsfront.Call, resource, vpc string, specifications []tagSpecification) ([]awsfront.Target, error) {
	of, err := a.about(ctx, call, ec2id.VPC, vpc)
	if err != nil {
		return nil, err
	}
	made, err := a.aboutNew(call, resource, specifications, map[string][]string{"ec2:Vpc": {a.arn(call, "vpc/"+vpc)}})
	return append(made, of...), err
}

// interfaceOf is the id of the one network interface of an instance, and instanceOf the reverse.
func interfaceOf(instance string) string {
	return ec2id.NetworkInterface.Prefix + instance[len(ec2id.Instance.Prefix):]
}

func instanceOf(networkInterface string) (string, error) {
	if err := ec2id.NetworkInterface.Check(networkInterface); err != nil {
		return "", err
	}
	return ec2id.Instance.Prefix + networkInterface[len(ec2id.NetworkInterface.Prefix):], nil
}

// networksDiffer says that a route table and what it is to be tied to, or to lead to, are of different VPCs.
func networksDiffer(table, what, id string) error {
	return awsfault.Errorf(invalidParameter, "route table %s and %s %s belong to different networks", table, what, id)
}
