// SPDX-License-Identifier: Apache-2.0

// Package accesspoints has EFS's actions about access points: directories of a file system, with a user that they are
// entered as.
package accesspoints

import (
	"cmp"
	"context"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/elasticfilesystem/efsresource"
	"muster.dev/muster/internal/storage/efs"
)

// API has the actions.
type API struct{ store *efsresource.Store }

// New has the actions over a store.
func New(store *efsresource.Store) *API { return &API{store} }

// Register adds the actions to the front.
func (a *API) Register(f *awsfront.Front) {
	awsfront.Register(f, efsresource.Service, "CreateAccessPoint", a.createAccessPoint())
	awsfront.Register(f, efsresource.Service, "DescribeAccessPoints", a.describeAccessPoints())
	awsfront.Register(f, efsresource.Service, "DeleteAccessPoint", a.deleteAccessPoint())
}

const accessPointExists = "AccessPointAlreadyExists" // a code

const maxPosixID int64 = 1<<32 - 1

type posixUser struct {
	UID, GID      int64
	SecondaryGIDs []int64
}

type creationInfo struct {
	OwnerUID, OwnerGID int64
	Permissions        string
}

type rootDirectory struct {
	Path         string
	CreationInfo *creationInfo
}

// describedPoint is an access point as EFS shows it.
type describedPoint struct {
	ClientToken, Name, AccessPointID, AccessPointARN, FileSystemID, OwnerID, LifeCycleState string
	Tags                                                                                    []awstag.Tag
	PosixUser                                                                               *posixUser
	RootDirectory                                                                           *rootDirectory
}

func (a *API) showPoint(call *awsfront.Call, p *v1alpha1.AccessPoint) *describedPoint {
	shown := &describedPoint{
		ClientToken: p.Spec.ClientToken, Name: string(p.Spec.Tags[efsresource.NameTag]), AccessPointID: p.Name, AccessPointARN: a.store.ARN(call, efsresource.AccessPoints+p.Name),
		FileSystemID: p.Spec.FileSystemID, OwnerID: call.Caller.Account(), LifeCycleState: "available",
		Tags: awsresource.ShownTags(p.Spec.Tags), RootDirectory: &rootDirectory{Path: p.Spec.Path},
	}
	if !p.DeletionTimestamp.IsZero() {
		shown.LifeCycleState = "deleting"
	}
	if u := p.Spec.PosixUser; u != nil {
		shown.PosixUser = &posixUser{UID: u.UID, GID: u.GID, SecondaryGIDs: u.SecondaryGIDs}
	}
	if o := p.Spec.Owner; o != nil {
		shown.RootDirectory.CreationInfo = &creationInfo{OwnerUID: o.UID, OwnerGID: o.GID, Permissions: o.Permissions}
	}
	return shown
}

type createPointInput struct {
	ClientToken, FileSystemID string
	Tags                      []awstag.Tag
	PosixUser                 *posixUser
	RootDirectory             *rootDirectory
}

func (a *API) createAccessPoint() awsfront.Spec[createPointInput, describedPoint] {
	return awsfront.Spec[createPointInput, describedPoint]{
		About: func(ctx context.Context, call *awsfront.Call, in *createPointInput) ([]awsfront.Target, error) {
			targets, err := a.store.AboutSystem(ctx, call, in.FileSystemID, awsresource.RequestTags(nil, in.Tags))
			return append(targets, efsresource.TagsOnCreate(call, a.store.ARN(call, efsresource.AccessPoints+"*"), in.Tags)...), err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *createPointInput) (*describedPoint, error) {
			id, err := a.store.SystemID(call, in.FileSystemID)
			if err != nil {
				return nil, err
			}
			made, err := wanted(in, id)
			if err != nil {
				return nil, err
			}
			if id == v1alpha1.DefaultFileSystemID(call.Caller.Account()) {
				return nil, efsresource.Fault(efsresource.BadRequest, "File system '%s' has volumes of every cluster, and is mounted by those alone: make a file system of your own", id)
			}
			defer a.store.Hold("token " + in.ClientToken)()
			defer a.store.Hold(id)()
			if err := a.store.Lives(ctx, id); err != nil {
				return nil, err
			}
			all := &v1alpha1.AccessPointList{}
			if err := a.store.Management.List(ctx, all); err != nil {
				return nil, efsresource.Away(err)
			}
			for i := range all.Items {
				if there := &all.Items[i]; there.Spec.ClientToken == in.ClientToken {
					return nil, efsresource.With(efsresource.Fault(accessPointExists, "Access point '%s' already exists with client token '%s'", there.Name, in.ClientToken), "AccessPointId", there.Name)
				}
			}
			if err := a.store.Management.Create(ctx, made); err != nil {
				return nil, efsresource.Away(err)
			}
			return a.showPoint(call, made), nil
		},
	}
}

// paths matches the paths that EFS takes: at most four names, which have no characters of the shell's and do not begin
// with a dot.
var paths = regexp.MustCompile("^(/|(/[^.$#<>;`|&?{}^*/\\n\\x00][^$#<>;`|&?{}^*/\\n\\x00]*){1,4})$")

var permissions = regexp.MustCompile(`^[0-7]{3,4}$`)

// wanted is the access point that a request describes.
func wanted(in *createPointInput, system string) (*v1alpha1.AccessPoint, error) {
	if err := efsresource.CheckToken("ClientToken", in.ClientToken); err != nil {
		return nil, err
	}
	tags, err := awstag.Read(efsresource.Service, in.Tags)
	if err != nil {
		return nil, err
	}
	made := &v1alpha1.AccessPoint{Spec: v1alpha1.AccessPointSpec{FileSystemID: system, Path: "/", ClientToken: in.ClientToken, Tags: awsresource.KeptTags(tags)}}
	made.Name = efsresource.NewID("fsap-")
	if u := in.PosixUser; u != nil {
		if err := checkPosixIDs("PosixUser", append([]int64{u.UID, u.GID}, u.SecondaryGIDs...)...); err != nil {
			return nil, err
		}
		if n := len(u.SecondaryGIDs); n > 16 {
			return nil, efsresource.Fault(efsresource.BadRequest, "PosixUser.SecondaryGids has %d groups: there may be 16", n)
		}
		made.Spec.PosixUser = &v1alpha1.PosixUser{UID: u.UID, GID: u.GID, SecondaryGIDs: u.SecondaryGIDs}
	}
	root := in.RootDirectory
	if root == nil {
		return made, nil
	}
	made.Spec.Path = cmp.Or(root.Path, "/")
	if !paths.MatchString(made.Spec.Path) || efs.CheckPath(made.Spec.Path) != nil || len(made.Spec.Path) > 100 {
		return nil, efsresource.Fault(efsresource.BadRequest, "invalid RootDirectory.Path %.110q: must be / or have one to four names of at most 100 characters together, none beginning with a dot or having one of $#<>;`|&?{}^*", root.Path)
	}
	if c := root.CreationInfo; c != nil {
		if err := checkPosixIDs("RootDirectory.CreationInfo", c.OwnerUID, c.OwnerGID); err != nil {
			return nil, err
		}
		if !permissions.MatchString(c.Permissions) {
			return nil, efsresource.Fault(efsresource.BadRequest, "invalid RootDirectory.CreationInfo.Permissions %.20q: must be 3 or 4 octal digits, such as 0755", c.Permissions)
		}
		made.Spec.Owner = &v1alpha1.DirectoryOwner{UID: c.OwnerUID, GID: c.OwnerGID, Permissions: c.Permissions}
	}
	return made, nil
}

func checkPosixIDs(where string, ids ...int64) error {
	for _, id := range ids {
		if id < 0 || id > maxPosixID {
			return efsresource.Fault(efsresource.BadRequest, "%s: the number %d of a user or group must be from 0 to %d", where, id, maxPosixID)
		}
	}
	return nil
}

type describePointsInput struct {
	MaxResults                             *int32
	NextToken, AccessPointID, FileSystemID string
}

type describePointsOutput struct {
	AccessPoints []*describedPoint
	NextToken    string
}

func (a *API) describeAccessPoints() awsfront.Spec[describePointsInput, describePointsOutput] {
	return awsfront.Spec[describePointsInput, describePointsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *describePointsInput) ([]awsfront.Target, error) {
			switch {
			case in.AccessPointID != "" && in.FileSystemID != "":
				return nil, efsresource.Fault(efsresource.BadRequest, "AccessPointId and FileSystemId exclude each other: give one of them")
			case in.AccessPointID != "":
				return a.store.AboutPoint(ctx, call, in.AccessPointID, nil)
			case in.FileSystemID != "":
				return a.store.AboutSystem(ctx, call, in.FileSystemID, nil)
			}
			return []awsfront.Target{{Resource: a.store.ARN(call, efsresource.AccessPoints+"*")}}, nil
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *describePointsInput) (*describePointsOutput, error) {
			found, err := a.points(ctx, call, in)
			if err != nil {
				return nil, err
			}
			page, next, err := awsresource.Page(a.store.Account, call, []any{in.AccessPointID, in.FileSystemID}, found, func(p v1alpha1.AccessPoint) string { return p.Name }, in.MaxResults, in.NextToken)
			if err != nil {
				return nil, err
			}
			out := &describePointsOutput{AccessPoints: []*describedPoint{}, NextToken: next}
			for i := range page {
				out.AccessPoints = append(out.AccessPoints, a.showPoint(call, &page[i]))
			}
			return out, nil
		},
	}
}

// points are the access points that a request asks for.
func (a *API) points(ctx context.Context, call *awsfront.Call, in *describePointsInput) ([]v1alpha1.AccessPoint, error) {
	if in.AccessPointID != "" {
		id, err := a.store.PointID(call, in.AccessPointID)
		if err != nil {
			return nil, err
		}
		one, err := a.store.Point(ctx, id)
		if err != nil {
			return nil, err
		}
		return []v1alpha1.AccessPoint{*one}, nil
	}
	system := ""
	if in.FileSystemID != "" {
		id, err := a.store.SystemID(call, in.FileSystemID)
		if err != nil {
			return nil, err
		}
		if _, err := a.store.System(ctx, id); err != nil {
			return nil, err
		}
		system = id
	}
	all := &v1alpha1.AccessPointList{}
	if err := a.store.Management.List(ctx, all); err != nil {
		return nil, efsresource.Away(err)
	}
	var found []v1alpha1.AccessPoint
	for i := range all.Items {
		if system == "" || all.Items[i].Spec.FileSystemID == system {
			found = append(found, all.Items[i])
		}
	}
	return found, nil
}

type pointInput struct{ AccessPointID string }

func (a *API) deleteAccessPoint() awsfront.Spec[pointInput, struct{}] {
	return awsfront.Spec[pointInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *pointInput) ([]awsfront.Target, error) {
			return a.store.AboutPoint(ctx, call, in.AccessPointID, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *pointInput) (*struct{}, error) {
			id, err := a.store.PointID(call, in.AccessPointID)
			if err != nil {
				return nil, err
			}
			point, err := a.store.Point(ctx, id)
			if err != nil {
				return nil, err
			}
			err = a.store.Management.Delete(ctx, point, client.Preconditions{UID: &point.UID})
			if apierrors.IsNotFound(err) {
				return nil, nil //nolint:nilnil // it is gone, as was asked for, and the answer is empty
			}
			return nil, efsresource.Away(err)
		},
	}
}
