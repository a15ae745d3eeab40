// SPDX-License-Identifier: Apache-2.0

// Package nodegroupspec reads labels and taints as command lines write them, lists how two specs of a node group
// differ, changes a spec as an update asks, and says what that changes on nodes. It is pure.
package nodegroupspec
