// SPDX-License-Identifier: Apache-2.0

// Package nodeconfig is the NodeConfig, the configuration of a node: that of EKS's nodes, and muster's. It reads
// documents strictly, merges them in order and knows where each value came from. Values in, values out.
package nodeconfig
