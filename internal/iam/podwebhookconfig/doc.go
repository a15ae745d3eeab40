// SPDX-License-Identifier: Apache-2.0

// Package podwebhookconfig is the configuration file of the pod identity webhook. Unknown keys are refused, and
// everything that is wrong is told at once. Without a section it is as on EKS.
package podwebhookconfig
