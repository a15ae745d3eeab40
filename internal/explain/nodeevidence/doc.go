// SPDX-License-Identifier: Apache-2.0

// Package nodeevidence gathers on a node itself what package diagnosis decides by: files of kubelet and containerd, units,
// the last minute of the kubelet's log, and a few probes. The node may be EKS's (AL2023 or AL2), kubeadm's, a host that
// joined Muster or one of its machines. It reads, and changes nothing; the node's credential is not used.
//
// Which layout a node has is seen by its files, see layouts:
//
//	EKS AL2023 and AL2, Muster   /var/lib/kubelet/kubeconfig; /etc/kubernetes/kubelet/config.json or kubelet-config.json
//	kubeadm, Muster's hosts      /etc/kubernetes/kubelet.conf; /var/lib/kubelet/config.yaml
//
// What happens if something cannot be read: it is told in Facts.Unseen, and the rest is explained. A host that has
// nothing of a node is [ErrNoNode].
//
// Files may be anybody's: each is read within a bound and without waiting, and texts lose their secrets here.
package nodeevidence
