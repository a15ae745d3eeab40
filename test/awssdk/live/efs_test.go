// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/efs/types"
)

func efsActions() []action {
	id := func(w *world, note string) *string { return aws.String(w.notes[note]) }
	tags := func(w *world, want string) {
		got := ""
		for _, tag := range need(w.efs.ListTagsForResource(w.ctx(), &efs.ListTagsForResourceInput{ResourceId: id(w, "system")})).Tags {
			got += aws.ToString(tag.Key) + "=" + aws.ToString(tag.Value) + " "
		}
		if got != want {
			w.Errorf("tags %q, want %q", got, want)
		}
	}
	return []action{
		{"CreateFileSystem", func(w *world) {
			in := &efs.CreateFileSystemInput{CreationToken: aws.String("live"), Tags: []types.Tag{{Key: aws.String("Name"), Value: aws.String("live")}}}
			out := need(w.efs.CreateFileSystem(w.ctx(), in))
			w.has(out, "FileSystemId", "FileSystemArn", "OwnerId", "CreationTime", "LifeCycleState", "SizeInBytes", "Name")
			w.notes["system"] = aws.ToString(out.FileSystemId)
			_, err := w.efs.CreateFileSystem(w.ctx(), in)
			w.refused("FileSystemAlreadyExists", err)
			_, err = w.efs.CreateFileSystem(w.ctx(), &efs.CreateFileSystemInput{CreationToken: aws.String("other"), Encrypted: aws.Bool(true)})
			w.refused("BadRequest", err)
		}},
		{"DescribeFileSystems", func(w *world) {
			w.eventually(time.Minute, func() error {
				out := need(w.efs.DescribeFileSystems(w.ctx(), &efs.DescribeFileSystemsInput{FileSystemId: id(w, "system")}))
				if len(out.FileSystems) != 1 || out.FileSystems[0].LifeCycleState != types.LifeCycleStateAvailable {
					return fmt.Errorf("%+v", out.FileSystems)
				}
				return nil
			})
			_, err := w.efs.DescribeFileSystems(w.ctx(), &efs.DescribeFileSystemsInput{FileSystemId: aws.String("fs-0123456789abcdef0")})
			w.refused("FileSystemNotFound", err)
		}},
		{"DescribeLifecycleConfiguration", func(w *world) {
			out := need(w.efs.DescribeLifecycleConfiguration(w.ctx(), &efs.DescribeLifecycleConfigurationInput{FileSystemId: id(w, "system")}))
			if len(out.LifecyclePolicies) != 0 {
				w.Errorf("%+v", out.LifecyclePolicies)
			}
		}},
		{"DescribeBackupPolicy", func(w *world) {
			out := need(w.efs.DescribeBackupPolicy(w.ctx(), &efs.DescribeBackupPolicyInput{FileSystemId: id(w, "system")}))
			if out.BackupPolicy == nil || out.BackupPolicy.Status != types.StatusDisabled {
				w.Errorf("%+v", out.BackupPolicy)
			}
		}},
		{"DescribeFileSystemPolicy", func(w *world) {
			_, err := w.efs.DescribeFileSystemPolicy(w.ctx(), &efs.DescribeFileSystemPolicyInput{FileSystemId: id(w, "system")})
			w.refused("PolicyNotFound", err)
		}},
		{"ListTagsForResource", func(w *world) { tags(w, "Name=live ") }},
		{"TagResource", func(w *world) {
			need(w.efs.TagResource(w.ctx(), &efs.TagResourceInput{ResourceId: id(w, "system"), Tags: []types.Tag{{Key: aws.String("x"), Value: aws.String("y")}}}))
			tags(w, "Name=live x=y ")
		}},
		{"UntagResource", func(w *world) {
			need(w.efs.UntagResource(w.ctx(), &efs.UntagResourceInput{ResourceId: id(w, "system"), TagKeys: []string{"x"}}))
			tags(w, "Name=live ")
		}},
		{"CreateMountTarget", func(w *world) {
			in := &efs.CreateMountTargetInput{FileSystemId: id(w, "system"), SubnetId: aws.String(w.subnets[0])}
			out := need(w.efs.CreateMountTarget(w.ctx(), in))
			w.has(out, "MountTargetId", "FileSystemId", "SubnetId", "AvailabilityZoneName", "AvailabilityZoneId", "VpcId")
			w.notes["target"] = aws.ToString(out.MountTargetId)
			_, err := w.efs.CreateMountTarget(w.ctx(), in)
			w.refused("MountTargetConflict", err)
		}},
		{"DescribeMountTargets", func(w *world) {
			out := need(w.efs.DescribeMountTargets(w.ctx(), &efs.DescribeMountTargetsInput{FileSystemId: id(w, "system")}))
			if len(out.MountTargets) != 1 || out.MountTargets[0].LifeCycleState != types.LifeCycleStateAvailable {
				w.Errorf("%+v", out.MountTargets)
			}
		}},
		{"DescribeMountTargetSecurityGroups", func(w *world) {
			out := need(w.efs.DescribeMountTargetSecurityGroups(w.ctx(), &efs.DescribeMountTargetSecurityGroupsInput{MountTargetId: id(w, "target")}))
			w.notes["group"] = out.SecurityGroups[0]
		}},
		{"ModifyMountTargetSecurityGroups", func(w *world) {
			need(w.efs.ModifyMountTargetSecurityGroups(w.ctx(), &efs.ModifyMountTargetSecurityGroupsInput{MountTargetId: id(w, "target"), SecurityGroups: []string{w.notes["group"]}}))
			_, err := w.efs.ModifyMountTargetSecurityGroups(w.ctx(), &efs.ModifyMountTargetSecurityGroupsInput{MountTargetId: id(w, "target"), SecurityGroups: []string{"sg-0123456789abcdef0"}})
			w.refused("SecurityGroupNotFound", err)
		}},
		{"DeleteMountTarget", func(w *world) {
			_, err := w.efs.DeleteFileSystem(w.ctx(), &efs.DeleteFileSystemInput{FileSystemId: id(w, "system")})
			w.refused("FileSystemInUse", err)
			need(w.efs.DeleteMountTarget(w.ctx(), &efs.DeleteMountTargetInput{MountTargetId: id(w, "target")}))
		}},
		{"CreateAccessPoint", func(w *world) {
			in := &efs.CreateAccessPointInput{
				ClientToken: aws.String("live"), FileSystemId: id(w, "system"), PosixUser: &types.PosixUser{Uid: aws.Int64(1000), Gid: aws.Int64(1000)},
				RootDirectory: &types.RootDirectory{Path: aws.String("/live"), CreationInfo: &types.CreationInfo{OwnerUid: aws.Int64(1000), OwnerGid: aws.Int64(1000), Permissions: aws.String("0700")}},
			}
			out := need(w.efs.CreateAccessPoint(w.ctx(), in))
			w.has(out, "AccessPointId", "AccessPointArn", "RootDirectory.CreationInfo.Permissions", "PosixUser.Uid", "ClientToken")
			w.notes["point"] = aws.ToString(out.AccessPointId)
			_, err := w.efs.CreateAccessPoint(w.ctx(), in)
			w.refused("AccessPointAlreadyExists", err)
		}},
		{"DescribeAccessPoints", func(w *world) {
			out := need(w.efs.DescribeAccessPoints(w.ctx(), &efs.DescribeAccessPointsInput{AccessPointId: id(w, "point")}))
			if len(out.AccessPoints) != 1 || aws.ToString(out.AccessPoints[0].RootDirectory.Path) != "/live" {
				w.Errorf("%+v", out.AccessPoints)
			}
			_, err := w.efs.DescribeAccessPoints(w.ctx(), &efs.DescribeAccessPointsInput{AccessPointId: aws.String("fsap-0123456789abcdef0")})
			w.refused("AccessPointNotFound", err)
		}},
		{"DeleteAccessPoint", func(w *world) {
			_, err := w.efs.DeleteFileSystem(w.ctx(), &efs.DeleteFileSystemInput{FileSystemId: id(w, "system")})
			w.refused("FileSystemInUse", err)
			need(w.efs.DeleteAccessPoint(w.ctx(), &efs.DeleteAccessPointInput{AccessPointId: id(w, "point")}))
		}},
		{"DeleteFileSystem", func(w *world) {
			need(w.efs.DeleteFileSystem(w.ctx(), &efs.DeleteFileSystemInput{FileSystemId: id(w, "system")}))
			w.eventually(time.Minute, func() error {
				if _, err := w.efs.DescribeFileSystems(w.ctx(), &efs.DescribeFileSystemsInput{FileSystemId: id(w, "system")}); codeOf(err) != "FileSystemNotFound" {
					return fmt.Errorf("it is still there: %w", err)
				}
				return nil
			})
		}},
	}
}
