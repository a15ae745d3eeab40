// SPDX-License-Identifier: Apache-2.0

// Package plane runs a plain upstream control plane for tests and benchmarks: etcd, kube-apiserver and, if asked for,
// kube-controller-manager, as kubeadm would set them up, with nothing of muster's in it. Everything listens on loopback
// at ports that were free, lives in one temporary directory, and is gone after Close, or when the calling process dies.
package plane
