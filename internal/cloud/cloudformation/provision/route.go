// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
)

func routeHandlers() map[string]handler {
	return map[string]handler{
		"AWS::EC2::RouteTable":                  {create: routeTables.order, read: routeTables.reads("RouteTableId"), update: routeTables.retags, remove: routeTables.deletes("DeleteRouteTable")},
		"AWS::EC2::Route":                       {create: createRoute, read: readRoute, update: replaceRoute, remove: deleteRoute},
		"AWS::EC2::SubnetRouteTableAssociation": {create: associate, read: readAssociation, update: reassociate, remove: disassociate, moves: true},
	}
}

// destinations are the properties of a route of which one says where it leads.
var destinations = []string{"DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId"}

// routeTo is the destination of a route, and the property that has it.
func (j *job) routeTo() (property, destination string) {
	for _, name := range destinations {
		if value := j.property(name); value != "" {
			return name, value
		}
	}
	return destinations[0], ""
}

// createRoute adds a route. A route that is there already is the resource's own if it has the same target.
func createRoute(ctx context.Context, j *job) (map[string]any, error) {
	_, destination := j.routeTo()
	made := map[string]any{"CidrBlock": destination}
	_, err := j.first(ctx)
	if !hasCode(err, "RouteAlreadyExists") {
		return made, err
	}
	route, unread := j.route(ctx)
	if unread != nil {
		return nil, unread
	}
	for name, value := range j.is {
		if !slices.Contains(destinations, name) && name != "RouteTableId" && text(route, name) != textOf(value) {
			return nil, err
		}
	}
	return made, nil
}

// route is the route of the table to the destination. The error is errGone if there is none.
func (j *job) route(ctx context.Context) (any, error) {
	table, err := routeTables.find(ctx, j, j.property("RouteTableId"))
	if err != nil {
		return nil, err
	}
	property, destination := j.routeTo()
	for _, route := range list(table, "Routes") {
		if text(route, property) == destination {
			return route, nil
		}
	}
	return nil, errGone
}

func readRoute(ctx context.Context, j *job) (map[string]any, bool, error) {
	_, err := j.route(ctx)
	_, destination := j.routeTo()
	return map[string]any{"CidrBlock": destination}, err == nil, err
}

func replaceRoute(ctx context.Context, j *job) (bool, error) {
	_, err := j.ask(ctx, ec2, "ReplaceRoute", maps.Clone(j.is))
	return err == nil, err
}

func deleteRoute(ctx context.Context, j *job) (bool, error) {
	property, destination := j.routeTo()
	_, err := j.ask(ctx, ec2, "DeleteRoute", map[string]any{"RouteTableId": j.property("RouteTableId"), property: destination})
	return err == nil, err
}

// associate associates a subnet with a route table. EC2 answers as before where that was done already, and refuses a subnet that is
// associated with another table.
func associate(ctx context.Context, j *job) (map[string]any, error) {
	out, err := j.first(ctx)
	return map[string]any{"Id": text(out, "AssociationId")}, err
}

// reassociate brings a subnet to the route table that is asked for, which gives it another association.
func reassociate(ctx context.Context, j *job) (bool, error) {
	tie, err := j.association(ctx)
	switch {
	case err != nil:
	case tie == nil:
		_, err = associate(ctx, j)
	case text(tie, "RouteTableId") != j.property("RouteTableId"):
		_, err = j.ask(ctx, ec2, "ReplaceRouteTableAssociation", map[string]any{"AssociationId": text(tie, "RouteTableAssociationId"), "RouteTableId": j.property("RouteTableId")})
	}
	return err == nil, err
}

// association is the association of the subnet; nil if it has the main table of its VPC.
func (j *job) association(ctx context.Context) (any, error) {
	subnet := j.property("SubnetId")
	tables, err := routeTables.filtered(ctx, j, map[string]string{"association.subnet-id": subnet})
	if err != nil {
		return nil, err
	}
	for _, table := range tables {
		for _, tie := range list(table, "Associations") {
			if text(tie, "SubnetId") == subnet {
				return tie, nil
			}
		}
	}
	return nil, nil
}

func readAssociation(ctx context.Context, j *job) (map[string]any, bool, error) {
	tie, err := j.association(ctx)
	if err == nil && tie == nil {
		err = errGone
	}
	return map[string]any{"Id": cmp.Or(text(tie, "RouteTableAssociationId"), j.attribute("Id"))}, err == nil, err
}

func disassociate(ctx context.Context, j *job) (bool, error) {
	_, err := j.ask(ctx, ec2, "DisassociateRouteTable", map[string]any{"AssociationId": j.attribute("Id")})
	if hasCode(err, "InvalidAssociationID.NotFound") || err != nil && strings.Contains(err.Error(), "does not exist") {
		return true, nil
	}
	return err == nil, err
}
