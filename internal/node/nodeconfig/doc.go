// SPDX-License-Identifier: Apache-2.0

// Package nodeconfig is what a machine is told about the node it is to become: the NodeConfig of EKS's nodes, and muster's. It
// reads documents strictly, merges them in order and knows where each value came from. Values in, values out.
package nodeconfig
