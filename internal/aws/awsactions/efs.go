// SPDX-License-Identifier: Apache-2.0

package awsactions

func efsActions() []Action {
	system, point := []string{"file-system"}, []string{"access-point"}
	either := []string{"access-point", "file-system"}
	const (
		replication = "file systems are directories of one host, which replicates nothing"
		throughput  = "a file system is as fast as the host's disk"
		policy      = "file systems have no policies of their own here: IAM's policies alone decide"
		preferences = "ids have 17 digits here, and no other form"
	)
	return []Action{
		{Name: "CreateFileSystem", Mark: Real, Resources: system, Keys: append(tagged(), "elasticfilesystem:Encrypted")},
		{Name: "DescribeFileSystems", Mark: Real, Resources: system},
		{Name: "DeleteFileSystem", Mark: Real, Resources: system},
		{Name: "CreateAccessPoint", Mark: Real, Resources: system, Keys: tagged()},
		{Name: "DescribeAccessPoints", Mark: Real, Resources: either},
		{Name: "DeleteAccessPoint", Mark: Real, Resources: point},
		{Name: "CreateMountTarget", Mark: Record, Resources: system},
		{Name: "DescribeMountTargets", Mark: Record, Resources: either},
		{Name: "DeleteMountTarget", Mark: Record, Resources: system},
		{Name: "DescribeMountTargetSecurityGroups", Mark: Record, Resources: system},
		{Name: "ModifyMountTargetSecurityGroups", Mark: Record, Resources: system},
		{Name: "ListTagsForResource", Mark: Real, Resources: either},
		{Name: "TagResource", Mark: Real, Resources: either, Keys: append(tagged(), "elasticfilesystem:CreateAction")},
		{Name: "UntagResource", Mark: Real, Resources: either, Keys: []string{"aws:TagKeys"}},
		{Name: "DescribeLifecycleConfiguration", Mark: Record, Resources: system},
		{Name: "DescribeBackupPolicy", Mark: Record, Resources: system},
		{Name: "DescribeFileSystemPolicy", Mark: Record, Resources: system},
		{Name: "UpdateFileSystem", Mark: Refused, Reason: throughput},
		{Name: "UpdateFileSystemProtection", Mark: Refused, Reason: replication},
		{Name: "PutLifecycleConfiguration", Mark: Refused, Reason: "a file system has one storage class, the host's disk"},
		{Name: "PutBackupPolicy", Mark: Refused, Reason: "nothing makes backups of file systems here"},
		{Name: "PutFileSystemPolicy", Mark: Refused, Reason: policy},
		{Name: "DeleteFileSystemPolicy", Mark: Refused, Reason: policy},
		{Name: "CreateReplicationConfiguration", Mark: Refused, Reason: replication},
		{Name: "DescribeReplicationConfigurations", Mark: Refused, Reason: replication},
		{Name: "DeleteReplicationConfiguration", Mark: Refused, Reason: replication},
		{Name: "DescribeAccountPreferences", Mark: Refused, Reason: preferences},
		{Name: "PutAccountPreferences", Mark: Refused, Reason: preferences},
	}
}

func efsResources() []Resource {
	return []Resource{
		{Type: "file-system", ARN: "arn:${Partition}:elasticfilesystem:${Region}:${Account}:file-system/${FileSystemId}"},
		{Type: "access-point", ARN: "arn:${Partition}:elasticfilesystem:${Region}:${Account}:access-point/${AccessPointId}"},
	}
}
