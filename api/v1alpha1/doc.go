// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds people write and read: Cluster, NodeGroup, Machine and Update of the group muster.dev, and others.
// They live in the management plane, an API server of their own, where nodes have no access.
//
// +kubebuilder:object:generate=true
// +groupName=muster.dev
package v1alpha1
