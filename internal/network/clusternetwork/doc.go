// SPDX-License-Identifier: Apache-2.0

// Package clusternetwork resolves the network of a cluster: the VPC and the subnets that it is in, and the range of its pods. What a Cluster
// leaves out is chosen once, when the cluster is made; the result is recorded and never changes.
package clusternetwork
