// SPDX-License-Identifier: Apache-2.0

// Package localdisk sets up instance-store disks, as spec.instance.localStorage of a NodeConfig asks for it and EKS's
// nodes do: as one array that the kubelet and containerd keep their data on, or each by itself.
//
//	/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_*
//	   RAID0, RAID10 ─> /dev/md/muster ─> MOUNTPATH/0 ─> /var/lib/kubelet, /var/lib/containerd, /var/log/pods
//	   Mount         ─> MOUNTPATH/1, MOUNTPATH/2, …
//
// Mounts are written as units of systemd, so that they are mounted again before the node's programs start. A disk with
// anything on it that is not this package's own is refused: nothing is ever formatted twice.
package localdisk
