// SPDX-License-Identifier: Apache-2.0

package elasticfilesystem

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/cloud/keylock"
)

const service = "elasticfilesystem"

// Config is what the actions need.
type Config struct {
	// Management reads and writes the management plane. It may answer describing actions from memory, which has what was written before.
	Management client.Client
	// Pages seals the tokens of lists.
	Pages  *nexttoken.Sealer
	Region string
	// Used counts the bytes that are written in a file system. It is stopped after a second.
	Used func(ctx context.Context, id string) (int64, error)
}

// api has the actions.
type api struct {
	Config
	region region.Region
	// locks have one change at a time of a file system with what names it, and of a token.
	locks keylock.Locks
	sizes sizes
}

// Register adds the actions to the front.
func Register(f *awsfront.Front, c Config) error {
	if c.Management == nil || c.Pages == nil || c.Used == nil {
		return errors.New("the actions of EFS need a client of the management plane, a sealer of pages, and sizes of file systems")
	}
	own, err := region.Find(c.Region)
	if err != nil {
		return fmt.Errorf("the actions of EFS: %w", err)
	}
	a := &api{Config: c, region: own}
	awsfront.Register(f, service, "CreateFileSystem", a.createFileSystem())
	awsfront.Register(f, service, "DescribeFileSystems", a.describeFileSystems())
	awsfront.Register(f, service, "DeleteFileSystem", a.deleteFileSystem())
	awsfront.Register(f, service, "DescribeLifecycleConfiguration", a.describeLifecycle())
	awsfront.Register(f, service, "DescribeBackupPolicy", a.describeBackupPolicy())
	awsfront.Register(f, service, "DescribeFileSystemPolicy", a.describeFileSystemPolicy())
	awsfront.Register(f, service, "CreateAccessPoint", a.createAccessPoint())
	awsfront.Register(f, service, "DescribeAccessPoints", a.describeAccessPoints())
	awsfront.Register(f, service, "DeleteAccessPoint", a.deleteAccessPoint())
	awsfront.Register(f, service, "CreateMountTarget", a.createMountTarget())
	awsfront.Register(f, service, "DescribeMountTargets", a.describeMountTargets())
	awsfront.Register(f, service, "DeleteMountTarget", a.deleteMountTarget())
	awsfront.Register(f, service, "DescribeMountTargetSecurityGroups", a.describeSecurityGroups())
	awsfront.Register(f, service, "ModifyMountTargetSecurityGroups", a.modifySecurityGroups())
	awsfront.Register(f, service, "ListTagsForResource", a.listTags())
	awsfront.Register(f, service, "TagResource", a.tagResource())
	awsfront.Register(f, service, "UntagResource", a.untagResource())
	return nil
}
