// SPDX-License-Identifier: Apache-2.0

// Package filesystems has EFS's actions about file systems, their sizes, and settings that no file system has here.
package filesystems

import (
	"cmp"
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/elasticfilesystem/efsresource"
)

// API has the actions.
type API struct {
	store *efsresource.Store
	used  func(ctx context.Context, id string) (int64, error)
	sizes sizes
}

// New has the actions over a store. The function used counts the bytes that are written in a file system; it is stopped
// after a second.
func New(store *efsresource.Store, used func(ctx context.Context, id string) (int64, error)) *API {
	return &API{store: store, used: used}
}

// Register adds the actions to the front.
func (a *API) Register(f *awsfront.Front) {
	awsfront.Register(f, efsresource.Service, "CreateFileSystem", a.createFileSystem())
	awsfront.Register(f, efsresource.Service, "DescribeFileSystems", a.describeFileSystems())
	awsfront.Register(f, efsresource.Service, "DeleteFileSystem", a.deleteFileSystem())
	awsfront.Register(f, efsresource.Service, "DescribeLifecycleConfiguration", a.describeLifecycle())
	awsfront.Register(f, efsresource.Service, "DescribeBackupPolicy", a.describeBackupPolicy())
	awsfront.Register(f, efsresource.Service, "DescribeFileSystemPolicy", a.describeFileSystemPolicy())
}

// Codes of the actions about file systems.
const (
	fileSystemExists = "FileSystemAlreadyExists"
	fileSystemInUse  = "FileSystemInUse"
	noPolicy         = "PolicyNotFound"
)

// Modes of all file systems. Requests may name no others.
const (
	generalPurpose = "generalPurpose"
	bursting       = "bursting"
)

type size struct {
	Value     int64
	Timestamp *time.Time
}

// described is a file system as EFS shows it.
type described struct {
	OwnerID, CreationToken, FileSystemID, FileSystemARN, LifeCycleState, Name, PerformanceMode, ThroughputMode string
	CreationTime                                                                                               time.Time
	NumberOfMountTargets                                                                                       int32
	SizeInBytes                                                                                                size
	Encrypted                                                                                                  bool
	Tags                                                                                                       []awstag.Tag
}

// tokenOf is the creation token of a file system. For a file system that was not made by this API it is the id.
func tokenOf(s *v1alpha1.FileSystem) string { return cmp.Or(s.Spec.CreationToken, s.Name) }

func (a *API) show(ctx context.Context, call *awsfront.Call, s *v1alpha1.FileSystem, targets int) *described {
	return &described{
		OwnerID: call.Caller.Account(), CreationToken: tokenOf(s), FileSystemID: s.Name, FileSystemARN: a.store.ARN(call, efsresource.FileSystems+s.Name),
		CreationTime: s.CreationTimestamp.Time, LifeCycleState: stateOf(s), Name: s.Spec.Name, PerformanceMode: generalPurpose, ThroughputMode: bursting,
		NumberOfMountTargets: int32(targets), //nolint:gosec // G115: there is one for each zone at most
		SizeInBytes:          a.sizes.of(ctx, call.Now, s.Name, a.used), Tags: awstag.Sorted(efsresource.SystemTags(s)),
	}
}

// stateOf is what EFS calls the state of a file system.
func stateOf(s *v1alpha1.FileSystem) string {
	ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case !s.DeletionTimestamp.IsZero():
		return "deleting"
	case ready == nil:
		return "creating"
	case ready.Status == "True":
		return "available"
	}
	return "error" // the directory cannot be made; the service tries again
}

type createSystemInput struct {
	CreationToken, PerformanceMode, ThroughputMode string
	Encrypted, Backup                              bool
	Tags                                           []awstag.Tag
}

func (a *API) createFileSystem() awsfront.Spec[createSystemInput, described] {
	return awsfront.Spec[createSystemInput, described]{
		About: func(_ context.Context, call *awsfront.Call, in *createSystemInput) ([]awsfront.Target, error) {
			conditions := awsresource.RequestTags(nil, in.Tags)
			conditions["elasticfilesystem:Encrypted"] = []string{map[bool]string{true: "true", false: "false"}[in.Encrypted]}
			made := a.store.ARN(call, efsresource.FileSystems+"*")
			return append([]awsfront.Target{{Resource: made, Conditions: conditions}}, efsresource.TagsOnCreate(call, made, in.Tags)...), nil
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *createSystemInput) (*described, error) {
			if err := checkSystem(in); err != nil {
				return nil, err
			}
			tags, err := awstag.Read(efsresource.Service, in.Tags)
			if err != nil {
				return nil, err
			}
			defer a.store.Hold("token " + in.CreationToken)()
			all := &v1alpha1.FileSystemList{}
			if err := a.store.Management.List(ctx, all); err != nil {
				return nil, efsresource.Away(err)
			}
			for i := range all.Items {
				if there := &all.Items[i]; tokenOf(there) == in.CreationToken {
					return nil, efsresource.With(efsresource.Fault(fileSystemExists, "File system '%s' already exists with creation token '%s'", there.Name, in.CreationToken), "FileSystemId", there.Name)
				}
			}
			made := &v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{CreationToken: in.CreationToken}}
			made.Name = efsresource.NewID("fs-")
			efsresource.SetSystemTags(made, tags)
			if err := a.store.Management.Create(ctx, made); err != nil {
				return nil, efsresource.Away(err)
			}
			return a.show(ctx, call, made, 0), nil
		},
	}
}

// checkSystem refuses what no file system here has: a request is never granted in part.
func checkSystem(in *createSystemInput) error {
	if err := efsresource.CheckToken("CreationToken", in.CreationToken); err != nil {
		return err
	}
	switch {
	case in.Encrypted:
		return efsresource.Fault(efsresource.BadRequest, "Encrypted: Muster encrypts no file systems: they are as safe as the host's disk. Leave it out")
	case in.Backup:
		return efsresource.Fault(efsresource.BadRequest, "Backup: Muster makes no backups of file systems. Leave it out")
	case in.PerformanceMode != "" && in.PerformanceMode != generalPurpose:
		return efsresource.Fault(efsresource.BadRequest, "invalid PerformanceMode %.40q: must be %s, or left out: a file system is as fast as the host's disk", in.PerformanceMode, generalPurpose)
	case in.ThroughputMode != "" && in.ThroughputMode != bursting:
		return efsresource.Fault(efsresource.BadRequest, "invalid ThroughputMode %.40q: must be %s, or left out: a file system is as fast as the host's disk", in.ThroughputMode, bursting)
	}
	return nil
}

type describeSystemsInput struct {
	MaxItems                            *int32
	Marker, CreationToken, FileSystemID string
}

type describeSystemsOutput struct {
	Marker, NextMarker string
	FileSystems        []*described
}

func (a *API) describeFileSystems() awsfront.Spec[describeSystemsInput, describeSystemsOutput] {
	return awsfront.Spec[describeSystemsInput, describeSystemsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *describeSystemsInput) ([]awsfront.Target, error) {
			if in.FileSystemID == "" {
				return []awsfront.Target{{Resource: a.store.ARN(call, efsresource.FileSystems+"*")}}, nil
			}
			return a.store.AboutSystem(ctx, call, in.FileSystemID, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *describeSystemsInput) (*describeSystemsOutput, error) {
			found, err := a.found(ctx, call, in)
			if err != nil {
				return nil, err
			}
			page, next, err := awsresource.Page(a.store.Account, call, []any{in.CreationToken, in.FileSystemID}, found, func(s v1alpha1.FileSystem) string { return s.Name }, in.MaxItems, in.Marker)
			if err != nil {
				return nil, err
			}
			targets, err := efsresource.MountTargets.List(ctx, a.store.Management)
			if err != nil {
				return nil, efsresource.Away(err)
			}
			counts := map[string]int{}
			for i := range targets {
				counts[targets[i].Data.FileSystem]++
			}
			out := &describeSystemsOutput{Marker: in.Marker, NextMarker: next, FileSystems: []*described{}}
			for i := range page {
				out.FileSystems = append(out.FileSystems, a.show(ctx, call, &page[i], counts[page[i].Name]))
			}
			return out, nil
		},
	}
}

// found are the file systems that a request asks for. An id that nothing has is an error, and a token is not.
func (a *API) found(ctx context.Context, call *awsfront.Call, in *describeSystemsInput) ([]v1alpha1.FileSystem, error) {
	if in.FileSystemID != "" {
		id, err := a.store.SystemID(call, in.FileSystemID)
		if err != nil {
			return nil, err
		}
		one, err := a.store.System(ctx, id)
		if err != nil || in.CreationToken != "" && in.CreationToken != tokenOf(one) {
			return nil, err
		}
		return []v1alpha1.FileSystem{*one}, nil
	}
	all := &v1alpha1.FileSystemList{}
	if err := a.store.Management.List(ctx, all); err != nil {
		return nil, efsresource.Away(err)
	}
	var found []v1alpha1.FileSystem
	for i := range all.Items {
		if in.CreationToken == "" || in.CreationToken == tokenOf(&all.Items[i]) {
			found = append(found, all.Items[i])
		}
	}
	return found, nil
}

type systemInput struct{ FileSystemID string }

func (a *API) deleteFileSystem() awsfront.Spec[systemInput, struct{}] {
	return awsfront.Spec[systemInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *systemInput) ([]awsfront.Target, error) {
			return a.store.AboutSystem(ctx, call, in.FileSystemID, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *systemInput) (*struct{}, error) {
			id, err := a.store.SystemID(call, in.FileSystemID)
			if err != nil {
				return nil, err
			}
			defer a.store.Hold(id)()
			system, err := a.store.System(ctx, id)
			if err != nil {
				return nil, err
			}
			if err := a.unused(ctx, id); err != nil {
				return nil, err
			}
			err = a.store.Management.Delete(ctx, system, client.Preconditions{UID: &system.UID})
			if apierrors.IsNotFound(err) {
				return nil, nil //nolint:nilnil // it is gone, as was asked for, and the answer is empty
			}
			return nil, efsresource.Away(err)
		},
	}
}

// unused refuses a file system that access points or mount targets name.
func (a *API) unused(ctx context.Context, id string) error {
	targets, err := efsresource.MountTargets.List(ctx, a.store.Management)
	if err != nil {
		return efsresource.Away(err)
	}
	for i := range targets {
		if targets[i].Data.FileSystem == id {
			return efsresource.Fault(fileSystemInUse, "File system '%s' has mount targets, such as %s: delete them first", id, targets[i].ID)
		}
	}
	points := &v1alpha1.AccessPointList{}
	if err := a.store.Management.List(ctx, points); err != nil {
		return efsresource.Away(err)
	}
	for i := range points.Items {
		if p := &points.Items[i]; p.Spec.FileSystemID == id {
			return efsresource.Fault(fileSystemInUse, "File system '%s' has access points, such as %s: delete them first, or the claims that they are volumes of", id, p.Name)
		}
	}
	snapshots := &v1alpha1.VolumeSnapshotList{}
	if err := a.store.Management.List(ctx, snapshots); err != nil {
		return efsresource.Away(err)
	}
	for i := range snapshots.Items {
		if s := &snapshots.Items[i]; s.Spec.FileSystemID == id {
			return efsresource.Fault(fileSystemInUse, "File system '%s' has snapshots of volumes, such as %s of cluster %s: delete their VolumeSnapshots first", id, s.Name, s.Spec.ClusterName)
		}
	}
	return nil
}
