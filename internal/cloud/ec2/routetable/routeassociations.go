// SPDX-License-Identifier: Apache-2.0

package routetable

import (
	"context"
	"maps"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/ec2/association"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

type associateRouteTableInput struct {
	RouteTableID string
	SubnetID     string
	DryRun       bool
}

type associateRouteTableOutput struct {
	AssociationID    string
	AssociationState *associationState
}

func (a *Actions) associateRouteTable() awsfront.Spec[associateRouteTableInput, associateRouteTableOutput] {
	return awsfront.Spec[associateRouteTableInput, associateRouteTableOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *associateRouteTableInput) ([]awsfront.Target, error) {
			table, err := a.ec2.About(ctx, call, ec2id.RouteTable, in.RouteTableID)
			if err != nil {
				return nil, err
			}
			subnet, err := a.ec2.About(ctx, call, ec2id.Subnet, in.SubnetID)
			return append(table, subnet...), err
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *associateRouteTableInput) (*associateRouteTableOutput, error) {
			if in.SubnetID == "" {
				return nil, awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter subnetId")
			}
			found, release, err := a.routeTables().Hold(ctx, in.RouteTableID)
			if err != nil {
				return nil, err
			}
			defer release()
			subnet, err := a.ec2.Subnet(ctx, in.SubnetID)
			if err != nil {
				return nil, err
			}
			if subnet.Spec.VPCID != found.Data.VPC {
				return nil, networksDiffer(in.RouteTableID, "subnet", in.SubnetID)
			}
			tied, err := a.associations.Associations(ctx)
			if err != nil {
				return nil, err
			}
			if has, ok := tied[found.Data.VPC].Tables[in.SubnetID]; ok {
				if has.To == in.RouteTableID {
					return &associateRouteTableOutput{has.ID, &associationState{"associated"}}, nil
				}
				return nil, awsfault.Errorf("Resource.AlreadyAssociated", "the specified association for route table %s conflicts with an existing association", in.RouteTableID)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			made := association.Association{ID: ec2resource.NewID(ec2id.RouteAssociation), To: in.RouteTableID}
			err = a.associations.Associate(ctx, found.Data.VPC, func(s *association.Associations) error {
				if s.Tables == nil {
					s.Tables = map[string]association.Association{}
				}
				s.Tables[in.SubnetID] = made
				return nil
			})
			if err != nil {
				return nil, err
			}
			return &associateRouteTableOutput{made.ID, &associationState{"associated"}}, nil
		},
	}
}

// routeAssociation finds an association by its id: its VPC, and its subnet, which is empty for that of the main table.
func (a *Actions) routeAssociation(ctx context.Context, id string) (vpc, subnet string, to association.Association, err error) {
	return a.associations.AssociationOf(ctx, ec2id.RouteAssociation, id, func(s *association.Associations) map[string]association.Association {
		all := map[string]association.Association{"": s.Main}
		maps.Copy(all, s.Tables)
		return all
	})
}

// aboutAssociation are the route table and the subnet of an association, and the table that it is to have, if there is
// one. If the association is missing, IAM is asked about all route tables (*) in its place, so that a caller without
// rights does not learn whether the association exists.
func (a *Actions) aboutAssociation(ctx context.Context, call *awsfront.Call, id, table string) ([]awsfront.Target, error) {
	_, subnet, to, err := a.routeAssociation(ctx, id)
	if ec2resource.IsMissing(err, ec2id.RouteAssociation) {
		targets, err := a.ec2.About(ctx, call, ec2id.RouteTable, table)
		return append(targets, a.ec2.Target(call, "route-table", "*", nil, nil)), err
	}
	if err != nil {
		return nil, err
	}
	targets, err := a.ec2.About(ctx, call, ec2id.RouteTable, to.To, table)
	if err != nil {
		return nil, err
	}
	of, err := a.ec2.About(ctx, call, ec2id.Subnet, subnet)
	return append(targets, of...), err
}

type replaceRouteTableAssociationInput struct {
	AssociationID string
	RouteTableID  string
	DryRun        bool
}

type replaceRouteTableAssociationOutput struct {
	NewAssociationID string
	AssociationState *associationState
}

func (a *Actions) replaceRouteTableAssociation() awsfront.Spec[replaceRouteTableAssociationInput, replaceRouteTableAssociationOutput] {
	return awsfront.Spec[replaceRouteTableAssociationInput, replaceRouteTableAssociationOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *replaceRouteTableAssociationInput) ([]awsfront.Target, error) {
			return a.aboutAssociation(ctx, call, in.AssociationID, in.RouteTableID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *replaceRouteTableAssociationInput) (*replaceRouteTableAssociationOutput, error) {
			found, release, err := a.routeTables().Hold(ctx, in.RouteTableID)
			if err != nil {
				return nil, err
			}
			defer release()
			vpc, subnet, _, err := a.routeAssociation(ctx, in.AssociationID)
			if err != nil {
				return nil, err
			}
			if vpc != found.Data.VPC {
				return nil, networksDiffer(in.RouteTableID, "association", in.AssociationID)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			made := association.Association{ID: ec2resource.NewID(ec2id.RouteAssociation), To: in.RouteTableID}
			err = a.associations.Associate(ctx, vpc, func(s *association.Associations) error {
				if subnet == "" {
					s.Main = made
					return nil
				}
				s.Tables[subnet] = made
				return nil
			})
			if err != nil {
				return nil, err
			}
			return &replaceRouteTableAssociationOutput{made.ID, &associationState{"associated"}}, nil
		},
	}
}

type disassociateRouteTableInput struct {
	AssociationID string
	DryRun        bool
}

func (a *Actions) disassociateRouteTable() awsfront.Spec[disassociateRouteTableInput, struct{}] {
	return awsfront.Spec[disassociateRouteTableInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *disassociateRouteTableInput) ([]awsfront.Target, error) {
			return a.aboutAssociation(ctx, call, in.AssociationID, "")
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *disassociateRouteTableInput) (*struct{}, error) {
			vpc, subnet, _, err := a.routeAssociation(ctx, in.AssociationID)
			if err != nil {
				return nil, err
			}
			if subnet == "" {
				return nil, awsfault.Errorf(ec2resource.InvalidParameter, "cannot disassociate the main route table association %s", in.AssociationID)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			defer a.ec2.Locks.Hold(vpc)()
			return nil, a.associations.Associate(ctx, vpc, func(s *association.Associations) error {
				if s.Tables[subnet].ID == in.AssociationID {
					delete(s.Tables, subnet)
				}
				return nil
			})
		},
	}
}
