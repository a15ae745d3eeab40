// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"slices"
	"strings"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
)

// mostRoutes is how many routes a table may have, as EC2's quota that can be raised to this.
const mostRoutes = 1000

// destination is where the packets of a route are for: an IPv4 or an IPv6 range. Routes of IPv6 are kept and lead nowhere: machines have no IPv6.
type destination struct {
	DestinationCidrBlock     string
	DestinationIpv6CidrBlock string
}

type routeInput struct {
	RouteTableID string
	destination
	GatewayID          string
	NatGatewayID       string
	InstanceID         string
	NetworkInterfaceID string
	DryRun             bool
}

type createRouteOutput struct{ Return bool }

func (a *api) aboutRoute(ctx context.Context, call *awsfront.Call, in *routeInput) ([]awsfront.Target, error) {
	return a.about(ctx, call, ec2id.RouteTable, in.RouteTableID)
}

func (a *api) createRoute() awsfront.Spec[routeInput, createRouteOutput] {
	return awsfront.Spec[routeInput, createRouteOutput]{
		About: a.aboutRoute,
		Do: func(ctx context.Context, _ *awsfront.Call, in *routeInput) (*createRouteOutput, error) {
			err := a.route(ctx, in, func(t *keptTable, at int, wanted keptRoute) error {
				switch {
				case at >= 0 && t.Routes[at] == wanted:
					return nil
				case at >= 0:
					return routeExists(wanted.Destination)
				case len(t.Routes) >= mostRoutes:
					return awsfault.Errorf("RouteLimitExceeded", "The maximum number of routes has been reached: %d.", mostRoutes)
				}
				t.Routes = append(t.Routes, wanted)
				return nil
			})
			if err != nil {
				return nil, err
			}
			return &createRouteOutput{true}, nil
		},
	}
}

func (a *api) replaceRoute() awsfront.Spec[routeInput, struct{}] {
	return awsfront.Spec[routeInput, struct{}]{
		About: a.aboutRoute,
		Do: func(ctx context.Context, _ *awsfront.Call, in *routeInput) (*struct{}, error) {
			return nil, a.route(ctx, in, func(t *keptTable, at int, wanted keptRoute) error {
				if at < 0 {
					return noRoute("There is no route defined for '%s' in the route table. Use CreateRoute instead.", wanted.Destination)
				}
				t.Routes[at] = wanted
				return nil
			})
		},
	}
}

type deleteRouteInput struct {
	RouteTableID string
	destination
	DryRun bool
}

func (a *api) deleteRoute() awsfront.Spec[deleteRouteInput, struct{}] {
	return awsfront.Spec[deleteRouteInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteRouteInput) ([]awsfront.Target, error) {
			return a.about(ctx, call, ec2id.RouteTable, in.RouteTableID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteRouteInput) (*struct{}, error) {
			block, err := in.block()
			if err != nil {
				return nil, err
			}
			found, release, err := a.routeTables().hold(ctx, in.RouteTableID)
			if err != nil {
				return nil, err
			}
			defer release()
			of, err := a.vpc(ctx, found.Data.VPC)
			if err != nil {
				return nil, err
			}
			if of.Spec.CIDRBlock == block {
				return nil, awsfault.Errorf(invalidParameter, "cannot remove local route %s in route table %s", block, in.RouteTableID)
			}
			if found.Data.at(block) < 0 {
				return nil, noRoute("no route with "+in.parameter()+" %s in route table "+in.RouteTableID, block)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return nil, a.routeTables().update(ctx, in.RouteTableID, func(r *record[keptTable]) error {
				r.Data.Routes = slices.DeleteFunc(r.Data.Routes, func(k keptRoute) bool { return k.Destination == block })
				return nil
			})
		},
	}
}

// route checks a route and has it put into its table, where at is the place of one to the same destination.
func (a *api) route(ctx context.Context, in *routeInput, put func(t *keptTable, at int, wanted keptRoute) error) error {
	block, err := in.block()
	if err != nil {
		return err
	}
	found, release, err := a.routeTables().hold(ctx, in.RouteTableID)
	if err != nil {
		return err
	}
	defer release()
	of, err := a.vpc(ctx, found.Data.VPC)
	if err != nil {
		return err
	}
	if of.Spec.CIDRBlock == block {
		return routeExists(block)
	}
	wanted, err := a.routeTo(ctx, in, found.Data.VPC)
	if err != nil {
		return err
	}
	wanted.Destination = block
	change := func(r *record[keptTable]) error { return put(&r.Data, r.Data.at(block), wanted) }
	if err := change(found); err != nil {
		return err
	}
	if err := dryrun.Would(in.DryRun); err != nil {
		return err
	}
	return a.routeTables().update(ctx, in.RouteTableID, change)
}

// routeTo is the one target of a route, which must be there and in the VPC.
func (a *api) routeTo(ctx context.Context, in *routeInput, vpc string) (wanted keptRoute, err error) {
	given := 0
	for _, id := range []string{in.GatewayID, in.NatGatewayID, in.InstanceID, in.NetworkInterfaceID} {
		if id != "" {
			given++
		}
	}
	switch {
	case given == 0:
		return wanted, awsfault.Errorf(missingParameter, "The request must contain exactly one of gatewayId, natGatewayId, networkInterfaceId, instanceId")
	case given > 1:
		return wanted, awsfault.Errorf(invalidCombination, "The request must contain exactly one of gatewayId, natGatewayId, networkInterfaceId, instanceId")
	}
	switch {
	case in.GatewayID != "":
		gateway, err := a.internetGateways().get(ctx, in.GatewayID)
		if err != nil {
			return wanted, err
		}
		if gateway.Data.VPC != vpc {
			return wanted, networksDiffer(in.RouteTableID, "network gateway", in.GatewayID)
		}
		return keptRoute{Gateway: in.GatewayID}, nil
	case in.NatGatewayID != "":
		nat, err := a.natGateways().get(ctx, in.NatGatewayID)
		if err != nil {
			return wanted, awsfault.Errorf("InvalidNatGatewayID.NotFound", "The natGateway ID '%.64s' does not exist", in.NatGatewayID)
		}
		if nat.Data.VPC != vpc {
			return wanted, networksDiffer(in.RouteTableID, "NAT gateway", in.NatGatewayID)
		}
		return keptRoute{NATGateway: in.NatGatewayID}, nil
	}
	instance := in.InstanceID
	if in.NetworkInterfaceID != "" {
		if instance, err = instanceOf(in.NetworkInterfaceID); err != nil {
			return wanted, err
		}
	}
	of, err := a.vpcOfInstance(ctx, instance)
	if err != nil {
		return wanted, err
	}
	if of != vpc {
		return wanted, networksDiffer(in.RouteTableID, "interface", interfaceOf(instance))
	}
	return keptRoute{Instance: instance}, nil
}

// vpcOfInstance is the VPC that an instance is in.
func (a *api) vpcOfInstance(ctx context.Context, id string) (string, error) {
	m := &v1alpha1.Machine{}
	if err := a.get(ctx, ec2id.Instance, id, m); err != nil {
		return "", err
	}
	of, err := a.subnet(ctx, string(m.Spec.SubnetID))
	if err != nil {
		return "", err
	}
	return of.Spec.VPCID, nil
}

// at is the place of the route to a destination, -1 if there is none.
func (t *keptTable) at(destination string) int {
	return slices.IndexFunc(t.Routes, func(k keptRoute) bool { return k.Destination == destination })
}

// parameter is the filter-like name of the range that is given, as EC2's messages have it.
func (d destination) parameter() string {
	if d.DestinationIpv6CidrBlock != "" {
		return "destination-ipv6-cidr-block"
	}
	return "destination-cidr-block"
}

// block reads the one range.
func (d destination) block() (string, error) {
	switch v4, v6 := d.DestinationCidrBlock, d.DestinationIpv6CidrBlock; {
	case v4 != "" && v6 != "":
		return "", awsfault.Errorf(invalidCombination, "The request must contain exactly one of destinationCidrBlock, destinationIpv6CidrBlock")
	case v6 != "":
		return blockOf("destinationIpv6CidrBlock", v6, false)
	case v4 != "":
		return blockOf("destinationCidrBlock", v4, true)
	}
	return "", awsfault.Errorf(missingParameter, "The request must contain the parameter destinationCidrBlock or destinationIpv6CidrBlock")
}

// shown is a destination as EC2 shows it. A table keeps ranges of both kinds in one list.
func (k keptRoute) shown() destination {
	if strings.Contains(k.Destination, ":") {
		return destination{DestinationIpv6CidrBlock: k.Destination}
	}
	return destination{DestinationCidrBlock: k.Destination}
}

func routeExists(destination string) error {
	return awsfault.Errorf("RouteAlreadyExists", "The route identified by %s already exists.", destination)
}

func noRoute(format, destination string) error {
	return awsfault.Errorf("InvalidRoute.NotFound", format, destination)
}
