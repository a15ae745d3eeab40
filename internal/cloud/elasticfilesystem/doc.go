// SPDX-License-Identifier: Apache-2.0

// Package elasticfilesystem has the actions of EFS, over the FileSystems and AccessPoints of the management plane: what
// the EFS CSI driver, the AWS CLI and Terraform's aws_efs_file_system, aws_efs_access_point and aws_efs_mount_target
// send.
//
// File systems and access points are real: volumes with their handles are mounted. A mount target is a record, because
// nothing is mounted over NFS here: the service mounts directories into machines. A request for encryption, throughput
// or backups of a file system is refused, since nothing here would do it.
//
// What happens if
//
//	a creation token comes again               FileSystemAlreadyExists or AccessPointAlreadyExists, with the id of the one that is there
//	a file system in use is to be deleted      FileSystemInUse, as long as an access point or a mount target names it
//	an access point is deleted                 its directory stays, with what is in it
//	a cluster's access point is deleted        the same, and the volume of the claim cannot be mounted again
//	the size of a file system cannot be told   it is 0 without a moment: the directory could not be counted within a second
package elasticfilesystem
