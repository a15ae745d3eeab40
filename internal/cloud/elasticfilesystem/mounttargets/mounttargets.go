// SPDX-License-Identifier: Apache-2.0

// Package mounttargets has EFS's actions about mount targets, which are records: nothing is mounted over NFS here.
package mounttargets

import (
	"context"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/elasticfilesystem/efsresource"
	"muster.dev/muster/internal/storage/efs"
)

// API has the actions.
type API struct {
	store  *efsresource.Store
	region region.Region
}

// New has the actions over a store, in a region whose zones they name.
func New(store *efsresource.Store, r region.Region) *API { return &API{store, r} }

// Register adds the actions to the front.
func (a *API) Register(f *awsfront.Front) {
	awsfront.Register(f, efsresource.Service, "CreateMountTarget", a.createMountTarget())
	awsfront.Register(f, efsresource.Service, "DescribeMountTargets", a.describeMountTargets())
	awsfront.Register(f, efsresource.Service, "DeleteMountTarget", a.deleteMountTarget())
	awsfront.Register(f, efsresource.Service, "DescribeMountTargetSecurityGroups", a.describeSecurityGroups())
	awsfront.Register(f, efsresource.Service, "ModifyMountTargetSecurityGroups", a.modifySecurityGroups())
}

// Codes of the actions about mount targets.
const (
	mountTargetNotFound   = "MountTargetNotFound"
	mountTargetConflict   = "MountTargetConflict"
	subnetNotFound        = "SubnetNotFound"
	securityGroupNotFound = "SecurityGroupNotFound"
	tooManySecurityGroups = "SecurityGroupLimitExceeded"
)

const maxSecurityGroups = 5 // of a mount target

var targetID = regexp.MustCompile(`^fsmt-[0-9a-f]{8,40}$`)

// describedTarget is a mount target as EFS shows it.
type describedTarget struct {
	OwnerID, MountTargetID, FileSystemID, SubnetID, LifeCycleState, AvailabilityZoneID, AvailabilityZoneName, VPCID string
}

func (a *API) showTarget(call *awsfront.Call, r *awsrecord.Record[efs.MountTarget]) *describedTarget {
	return &describedTarget{
		OwnerID: call.Caller.Account(), MountTargetID: r.ID, FileSystemID: r.Data.FileSystem, SubnetID: r.Data.Subnet, LifeCycleState: "available",
		AvailabilityZoneID: a.zoneID(r.Data.Zone), AvailabilityZoneName: r.Data.Zone, VPCID: r.Data.VPC,
	}
}

func (a *API) zoneID(name string) string {
	for _, zone := range a.region.Zones {
		if zone.Name == name {
			return zone.ID
		}
	}
	return ""
}

// target reads a mount target.
func (a *API) target(ctx context.Context, id string) (*awsrecord.Record[efs.MountTarget], error) {
	if !targetID.MatchString(id) {
		return nil, efsresource.Fault(efsresource.BadRequest, "invalid mount target id %.100q: must be fsmt- and hexadecimal digits", id)
	}
	r, err := efsresource.MountTargets.Get(ctx, a.store.Management, id)
	if apierrors.IsNotFound(err) {
		return nil, efsresource.Fault(mountTargetNotFound, "Mount target '%s' does not exist.", id)
	}
	return r, efsresource.Away(err)
}

// aboutTarget is the file system of a mount target for IAM, or every file system if there is no such mount target.
func (a *API) aboutTarget(ctx context.Context, call *awsfront.Call, id string) ([]awsfront.Target, error) {
	r, err := a.target(ctx, id)
	if err != nil {
		return []awsfront.Target{{Resource: a.store.ARN(call, efsresource.FileSystems+"*")}}, nil //nolint:nilerr // the action says it, to a caller who may know
	}
	return a.store.AboutSystem(ctx, call, r.Data.FileSystem, nil)
}

type createTargetInput struct {
	FileSystemID, SubnetID string
	SecurityGroups         []string
}

func (a *API) createMountTarget() awsfront.Spec[createTargetInput, describedTarget] {
	return awsfront.Spec[createTargetInput, describedTarget]{
		About: func(ctx context.Context, call *awsfront.Call, in *createTargetInput) ([]awsfront.Target, error) {
			return a.store.AboutSystem(ctx, call, in.FileSystemID, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *createTargetInput) (*describedTarget, error) {
			id, err := a.store.SystemID(call, in.FileSystemID)
			if err != nil {
				return nil, err
			}
			defer a.store.Hold(id)()
			if err := a.store.Lives(ctx, id); err != nil {
				return nil, err
			}
			subnet := &v1alpha1.Subnet{}
			if err := a.store.Management.Get(ctx, client.ObjectKey{Name: in.SubnetID}, subnet); apierrors.IsNotFound(err) || in.SubnetID == "" {
				return nil, efsresource.Fault(subnetNotFound, "The subnet ID '%.40s' does not exist", in.SubnetID)
			} else if err != nil {
				return nil, efsresource.Away(err)
			}
			made := &awsrecord.Record[efs.MountTarget]{ID: efsresource.NewID("fsmt-"), Data: efs.MountTarget{
				FileSystem: id, Subnet: subnet.Name, VPC: subnet.Spec.VPCID, Zone: subnet.Spec.AvailabilityZone, SecurityGroups: in.SecurityGroups,
			}}
			if len(in.SecurityGroups) == 0 {
				made.Data.SecurityGroups = []string{v1alpha1.DefaultSecurityGroupID(subnet.Spec.VPCID)}
			}
			if err := a.checkSecurityGroups(ctx, made.Data.VPC, made.Data.SecurityGroups); err != nil {
				return nil, err
			}
			if err := a.noConflict(ctx, made.Data); err != nil {
				return nil, err
			}
			if err := efsresource.MountTargets.Create(ctx, a.store.Management, made); err != nil {
				return nil, efsresource.Away(err)
			}
			return a.showTarget(call, made), nil
		},
	}
}

// noConflict refuses a second mount target of a zone, and one of another VPC than the others of the file system.
func (a *API) noConflict(ctx context.Context, made efs.MountTarget) error {
	all, err := efsresource.MountTargets.List(ctx, a.store.Management)
	if err != nil {
		return efsresource.Away(err)
	}
	for i := range all {
		switch there := &all[i]; {
		case there.Data.FileSystem != made.FileSystem:
		case there.Data.VPC != made.VPC:
			return efsresource.Fault(mountTargetConflict, "requested subnet for new mount target is not in the same VPC as existing mount targets, such as %s in %s", there.ID, there.Data.VPC)
		case there.Data.Zone == made.Zone:
			return efsresource.Fault(mountTargetConflict, "mount target already exists in this AZ: %s", there.ID)
		}
	}
	return nil
}

func (a *API) checkSecurityGroups(ctx context.Context, vpc string, ids []string) error {
	if len(ids) > maxSecurityGroups {
		return efsresource.Fault(tooManySecurityGroups, "There are %d security groups, and a mount target may have %d", len(ids), maxSecurityGroups)
	}
	for _, id := range ids {
		group := &v1alpha1.SecurityGroup{}
		err := a.store.Management.Get(ctx, client.ObjectKey{Name: id}, group)
		switch {
		case id == "", apierrors.IsNotFound(err), err == nil && group.Spec.VPCID != vpc:
			return efsresource.Fault(securityGroupNotFound, "The security group '%.40s' does not exist in %s", id, vpc)
		case err != nil:
			return efsresource.Away(err)
		}
	}
	return nil
}

type describeTargetsInput struct {
	MaxItems                                           *int32
	Marker, FileSystemID, MountTargetID, AccessPointID string
}

type describeTargetsOutput struct {
	Marker, NextMarker string
	MountTargets       []*describedTarget
}

func (a *API) describeMountTargets() awsfront.Spec[describeTargetsInput, describeTargetsOutput] {
	return awsfront.Spec[describeTargetsInput, describeTargetsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *describeTargetsInput) ([]awsfront.Target, error) {
			given := slices.DeleteFunc([]string{in.FileSystemID, in.MountTargetID, in.AccessPointID}, func(s string) bool { return s == "" })
			switch {
			case len(given) != 1:
				return nil, efsresource.Fault(efsresource.BadRequest, "%d of FileSystemId, MountTargetId and AccessPointId are given: give one", len(given))
			case in.FileSystemID != "":
				return a.store.AboutSystem(ctx, call, in.FileSystemID, nil)
			case in.AccessPointID != "":
				return a.store.AboutPoint(ctx, call, in.AccessPointID, nil)
			}
			return a.aboutTarget(ctx, call, in.MountTargetID)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *describeTargetsInput) (*describeTargetsOutput, error) {
			found, err := a.targets(ctx, call, in)
			if err != nil {
				return nil, err
			}
			page, next, err := awsresource.Page(a.store.Account, call, []any{in.FileSystemID, in.MountTargetID, in.AccessPointID}, found, func(r awsrecord.Record[efs.MountTarget]) string { return r.ID }, in.MaxItems, in.Marker)
			if err != nil {
				return nil, err
			}
			out := &describeTargetsOutput{Marker: in.Marker, NextMarker: next, MountTargets: []*describedTarget{}}
			for i := range page {
				out.MountTargets = append(out.MountTargets, a.showTarget(call, &page[i]))
			}
			return out, nil
		},
	}
}

// targets are the mount targets that a request asks for, by one of three names.
func (a *API) targets(ctx context.Context, call *awsfront.Call, in *describeTargetsInput) ([]awsrecord.Record[efs.MountTarget], error) {
	if in.MountTargetID != "" {
		one, err := a.target(ctx, in.MountTargetID)
		if err != nil {
			return nil, err
		}
		return []awsrecord.Record[efs.MountTarget]{*one}, nil
	}
	var system string
	if in.AccessPointID != "" {
		id, err := a.store.PointID(call, in.AccessPointID)
		if err != nil {
			return nil, err
		}
		point, err := a.store.Point(ctx, id)
		if err != nil {
			return nil, err
		}
		system = point.Spec.FileSystemID
	} else {
		id, err := a.store.SystemID(call, in.FileSystemID)
		if err == nil {
			_, err = a.store.System(ctx, id)
		}
		if err != nil {
			return nil, err
		}
		system = id
	}
	all, err := efsresource.MountTargets.List(ctx, a.store.Management)
	return slices.DeleteFunc(all, func(r awsrecord.Record[efs.MountTarget]) bool { return r.Data.FileSystem != system }), efsresource.Away(err)
}

type targetInput struct{ MountTargetID string }

func (a *API) deleteMountTarget() awsfront.Spec[targetInput, struct{}] {
	return awsfront.Spec[targetInput, struct{}]{About: a.aboutOneTarget, Do: func(ctx context.Context, _ *awsfront.Call, in *targetInput) (*struct{}, error) {
		r, err := a.target(ctx, in.MountTargetID)
		if err != nil {
			return nil, err
		}
		return nil, efsresource.Away(client.IgnoreNotFound(efsresource.MountTargets.Delete(ctx, a.store.Management, r.ID)))
	}}
}

func (a *API) aboutOneTarget(ctx context.Context, call *awsfront.Call, in *targetInput) ([]awsfront.Target, error) {
	return a.aboutTarget(ctx, call, in.MountTargetID)
}

type groupsOutput struct{ SecurityGroups []string }

func (a *API) describeSecurityGroups() awsfront.Spec[targetInput, groupsOutput] {
	return awsfront.Spec[targetInput, groupsOutput]{About: a.aboutOneTarget, Do: func(ctx context.Context, _ *awsfront.Call, in *targetInput) (*groupsOutput, error) {
		r, err := a.target(ctx, in.MountTargetID)
		if err != nil {
			return nil, err
		}
		return &groupsOutput{r.Data.SecurityGroups}, nil
	}}
}

type modifyGroupsInput struct {
	MountTargetID  string
	SecurityGroups []string
}

func (a *API) modifySecurityGroups() awsfront.Spec[modifyGroupsInput, struct{}] {
	return awsfront.Spec[modifyGroupsInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *modifyGroupsInput) ([]awsfront.Target, error) {
			return a.aboutTarget(ctx, call, in.MountTargetID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *modifyGroupsInput) (*struct{}, error) {
			there, err := a.target(ctx, in.MountTargetID)
			if err != nil {
				return nil, err
			}
			ids := in.SecurityGroups
			if len(ids) == 0 {
				ids = []string{v1alpha1.DefaultSecurityGroupID(there.Data.VPC)}
			}
			if err := a.checkSecurityGroups(ctx, there.Data.VPC, ids); err != nil {
				return nil, err
			}
			_, err = efsresource.MountTargets.Update(ctx, a.store.Management, there.ID, func(r *awsrecord.Record[efs.MountTarget]) error { r.Data.SecurityGroups = ids; return nil })
			if apierrors.IsNotFound(err) {
				return nil, efsresource.Fault(mountTargetNotFound, "Mount target '%s' does not exist.", there.ID)
			}
			return nil, efsresource.Away(err)
		},
	}
}
