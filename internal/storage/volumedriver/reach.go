// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/storage/efs"
)

// reach is what decides which file systems a cluster may use, beside its name.
type reach struct {
	vpcID             string
	defaultFileSystem string
}

// to refuses a file system that is not there, or for other clusters.
func (r reach) to(ctx context.Context, management client.Reader, clusterName, fileSystemID string) error {
	system := &v1alpha1.FileSystem{}
	if err := management.Get(ctx, client.ObjectKey{Name: fileSystemID}, system); err != nil {
		return missing(err, "file system", fileSystemID)
	}
	return r.check(ctx, management, clusterName, system)
}

// check refuses a file system that is for other clusters: its spec names the clusters that may use it, and, as on AWS,
// a file system with mount targets is reached only from their VPC. A file system without mount targets is reached from
// everywhere here, because volumes need none, and so is the default file system, which clusters of every VPC need.
func (r reach) check(ctx context.Context, management client.Reader, clusterName string, system *v1alpha1.FileSystem) error {
	if only := system.Spec.Clusters; len(only) > 0 && !slices.Contains(only, clusterName) {
		return status.Errorf(codes.PermissionDenied, "file system %s is for other clusters than %s: spec.clusters of the FileSystem must name it, or be empty", system.Name, clusterName)
	}
	if system.Name == r.defaultFileSystem {
		return nil
	}
	records := &v1alpha1.AWSRecordList{}
	if err := management.List(ctx, records); err != nil {
		return status.Errorf(codes.Unavailable, "the mount targets of file system %s: %v", system.Name, err)
	}
	var elsewhere []string
	for i := range records.Items {
		record := &records.Items[i]
		if record.Spec.Type != efs.MountTargetRecord {
			continue
		}
		target, err := efs.ReadMountTarget(record.Spec.Data.Raw)
		if err != nil {
			return status.Errorf(codes.Unavailable, "the record %s: %v", record.Name, err) // it may be one of this file system
		}
		switch {
		case target.FileSystem != system.Name:
		case target.VPC == r.vpcID && r.vpcID != "":
			return nil
		default:
			elsewhere = append(elsewhere, record.Name+" in "+target.VPC)
		}
	}
	if len(elsewhere) > 0 {
		return status.Errorf(codes.PermissionDenied, "file system %s has mount targets in another VPC than cluster %s, which is in %s: %s. Make one there, or delete these", system.Name, clusterName, r.vpcID, strings.Join(elsewhere, ", "))
	}
	return nil
}
