// SPDX-License-Identifier: Apache-2.0

// Package efs is what names volumes of EFS: ids of file systems and access points, volume handles of the CSI driver
// efs.csi.aws.com, the parameters of its StorageClasses, and what is kept of mount targets. It trusts nothing that it
// reads: a handle or a parameter that it does not know in full is refused, with what would be right.
package efs
