// SPDX-License-Identifier: Apache-2.0

// Package node has the commands about this node: its NodeConfig, its certificates, its agent, and the bootstrap.sh of
// EKS.
package node
