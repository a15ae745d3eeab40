// SPDX-License-Identifier: Apache-2.0

// Package podwebhook holds package podpatch against amazon-eks-pod-identity-webhook: its own pods with the patches that
// they expect, and any pod that fuzzing finds. Nothing of the original is in this tree: its tests' pods are read from
// its module.
package podwebhook
