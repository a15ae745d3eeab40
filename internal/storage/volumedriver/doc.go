// SPDX-License-Identifier: Apache-2.0

// Package volumedriver is the CSI driver efs.csi.aws.com of one cluster: volumes that are directories of the host, as
// the access points of EFS are directories of a file system.
//
//	claim ──> provisioner ──> AccessPoint + directory ──> PersistentVolume ──> pod on a machine
//	                                                                            └─> kubelet ──> socket on the machine's disk ──> mount
//
// Both halves are in the service, on the host. There is no agent on machines: the kubelet of a machine finds sockets on
// the machine's disk, at which the service answers. So the service knows by the socket which machine is asking, and the
// machine gets a mount and never the directory that the file systems are in.
//
// It trusts the cluster's API server and the management plane, and of what a machine says nothing: a volume is mounted
// on a machine only if a pod of that machine's Node uses a claim that is bound to a PersistentVolume with that handle,
// and an access point of a cluster only in that cluster.
//
// A raw block volume is a file, which a loop device of the host makes a block device: the device is mounted on machines
// in place of a directory. The file behind a device says whose it is and the machines' mounts say whether it is used,
// so none is lost or left by a crash.
//
// A machine can make its paths never answer. So each step on a machine has a time limit, and holds no lock that other
// machines wait for; the sockets of machines are made side by side.
//
// A snapshot is a copy of a directory or file that shares its content, beside the volumes of the file system, with a
// VolumeSnapshot in the management plane:
//
//	VolumeSnapshotContent ──> snapshotter ──> VolumeSnapshot + copy of the directory ──> provisioner, for claims that name it
//
// The snapshotter does what upstream's csi-snapshotter does in a driver's pod, whenever the cluster has the kinds.
//
// It keeps no state: an AccessPoint follows from the cluster and the volume's name, so every call may come again after
// a crash, at whatever point the first one ended. While the service is away, what is mounted stays mounted; kubelets
// ask again until it is back.
package volumedriver
