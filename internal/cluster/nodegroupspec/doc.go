// SPDX-License-Identifier: Apache-2.0

// Package nodegroupspec reads labels and taints as command lines write them, and lists how two specs of a node group differ. It is pure.
package nodegroupspec
