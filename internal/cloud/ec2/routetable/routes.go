// SPDX-License-Identifier: Apache-2.0

package routetable

import (
	"context"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	ec2instance "muster.dev/muster/internal/cloud/ec2/instance"
)

// MostRoutes is how many routes a table may have, as EC2's quota that can be raised to this.
const MostRoutes = 1000

// destination is where the packets of a route are for: an IPv4 or an IPv6 range. Routes of IPv6 are kept and lead
// nowhere: machines have no IPv6.
type destination struct {
	DestinationCidrBlock     string `filter:"destination-cidr-block,omitempty"`
	DestinationIpv6CidrBlock string `filter:"destination-ipv6-cidr-block,omitempty"`
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

func (a *Actions) aboutRoute(ctx context.Context, call *awsfront.Call, in *routeInput) ([]awsfront.Target, error) {
	return a.ec2.About(ctx, call, ec2id.RouteTable, in.RouteTableID)
}

func (a *Actions) createRoute() awsfront.Spec[routeInput, createRouteOutput] {
	return awsfront.Spec[routeInput, createRouteOutput]{
		About: a.aboutRoute,
		Do: func(ctx context.Context, _ *awsfront.Call, in *routeInput) (*createRouteOutput, error) {
			err := a.route(ctx, in, func(t *KeptTable, at int, wanted KeptRoute) error {
				switch {
				case at >= 0 && t.Routes[at] == wanted:
					return nil
				case at >= 0:
					return routeExists(wanted.Destination)
				case len(t.Routes) >= MostRoutes:
					return awsfault.Errorf("RouteLimitExceeded", "The maximum number of routes has been reached: %d.", MostRoutes)
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

func (a *Actions) replaceRoute() awsfront.Spec[routeInput, struct{}] {
	return awsfront.Spec[routeInput, struct{}]{
		About: a.aboutRoute,
		Do: func(ctx context.Context, _ *awsfront.Call, in *routeInput) (*struct{}, error) {
			return nil, a.route(ctx, in, func(t *KeptTable, at int, wanted KeptRoute) error {
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

func (a *Actions) deleteRoute() awsfront.Spec[deleteRouteInput, struct{}] {
	return awsfront.Spec[deleteRouteInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteRouteInput) ([]awsfront.Target, error) {
			return a.ec2.About(ctx, call, ec2id.RouteTable, in.RouteTableID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteRouteInput) (*struct{}, error) {
			block, err := in.block()
			if err != nil {
				return nil, err
			}
			found, release, err := a.routeTables().Hold(ctx, in.RouteTableID)
			if err != nil {
				return nil, err
			}
			defer release()
			of, err := a.ec2.VPC(ctx, found.Data.VPC)
			if err != nil {
				return nil, err
			}
			if of.Spec.CIDRBlock == block {
				return nil, awsfault.Errorf(ec2resource.InvalidParameter, "cannot remove local route %s in route table %s", block, in.RouteTableID)
			}
			if found.Data.at(block) < 0 {
				return nil, noRoute("no route with "+in.parameter()+" %s in route table "+in.RouteTableID, block)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return nil, a.routeTables().Update(ctx, in.RouteTableID, func(r *ec2resource.Record[KeptTable]) error {
				r.Data.Routes = slices.DeleteFunc(r.Data.Routes, func(k KeptRoute) bool { return k.Destination == block })
				return nil
			})
		},
	}
}

// route checks a route and has it put into its table, where at is the place of one to the same destination.
func (a *Actions) route(ctx context.Context, in *routeInput, put func(t *KeptTable, at int, wanted KeptRoute) error) error {
	block, err := in.block()
	if err != nil {
		return err
	}
	found, release, err := a.routeTables().Hold(ctx, in.RouteTableID)
	if err != nil {
		return err
	}
	defer release()
	of, err := a.ec2.VPC(ctx, found.Data.VPC)
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
	change := func(r *ec2resource.Record[KeptTable]) error { return put(&r.Data, r.Data.at(block), wanted) }
	if err := change(found); err != nil {
		return err
	}
	if err := dryrun.Would(in.DryRun); err != nil {
		return err
	}
	return a.routeTables().Update(ctx, in.RouteTableID, change)
}

// routeTo is the one target of a route, which must be there and in the VPC.
func (a *Actions) routeTo(ctx context.Context, in *routeInput, vpc string) (wanted KeptRoute, err error) {
	given := 0
	for _, id := range []string{in.GatewayID, in.NatGatewayID, in.InstanceID, in.NetworkInterfaceID} {
		if id != "" {
			given++
		}
	}
	switch {
	case given == 0:
		return wanted, awsfault.Errorf(ec2resource.MissingParameter, "The request must contain exactly one of gatewayId, natGatewayId, networkInterfaceId, instanceId")
	case given > 1:
		return wanted, awsfault.Errorf(ec2resource.InvalidCombination, "The request must contain exactly one of gatewayId, natGatewayId, networkInterfaceId, instanceId")
	}
	switch {
	case in.GatewayID != "":
		gateway, err := a.gateways.InternetGateways().Get(ctx, in.GatewayID)
		if err != nil {
			return wanted, err
		}
		if gateway.Data.VPC != vpc {
			return wanted, networksDiffer(in.RouteTableID, "network gateway", in.GatewayID)
		}
		return KeptRoute{Gateway: in.GatewayID}, nil
	case in.NatGatewayID != "":
		nat, err := a.gateways.NatGateways().Get(ctx, in.NatGatewayID)
		if err != nil {
			return wanted, awsfault.Errorf("InvalidNatGatewayID.NotFound", "The natGateway ID '%.64s' does not exist", in.NatGatewayID)
		}
		if nat.Data.VPC != vpc {
			return wanted, networksDiffer(in.RouteTableID, "NAT gateway", in.NatGatewayID)
		}
		return KeptRoute{NATGateway: in.NatGatewayID}, nil
	}
	instance := in.InstanceID
	if in.NetworkInterfaceID != "" {
		if instance, err = ec2instance.Of(in.NetworkInterfaceID); err != nil {
			return wanted, err
		}
	}
	of, err := a.instances.VpcOfInstance(ctx, instance)
	if err != nil {
		return wanted, err
	}
	if of != vpc {
		return wanted, networksDiffer(in.RouteTableID, "interface", ec2instance.InterfaceOf(instance))
	}
	return KeptRoute{Instance: instance}, nil
}

// at is the place of the route to a destination, -1 if there is none.
func (t *KeptTable) at(destination string) int {
	return slices.IndexFunc(t.Routes, func(k KeptRoute) bool { return k.Destination == destination })
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
		return "", awsfault.Errorf(ec2resource.InvalidCombination, "The request must contain exactly one of destinationCidrBlock, destinationIpv6CidrBlock")
	case v6 != "":
		return ec2resource.BlockOf("destinationIpv6CidrBlock", v6, false)
	case v4 != "":
		return ec2resource.BlockOf("destinationCidrBlock", v4, true)
	}
	return "", awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter destinationCidrBlock or destinationIpv6CidrBlock")
}

// shown is a destination as EC2 shows it. A table keeps ranges of both kinds in one list.
func (k KeptRoute) shown() destination {
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
