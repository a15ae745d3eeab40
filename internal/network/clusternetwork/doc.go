// SPDX-License-Identifier: Apache-2.0

// Package clusternetwork resolves the network of a cluster: the VPC and the subnets that it is in, and the range of its
// pods. Fields that a Cluster leaves out are chosen once, when the cluster is made; the result is recorded and never
// changes.
package clusternetwork
