// SPDX-License-Identifier: Apache-2.0

// Package fargate decides about pods that have a machine each: which profile selects a pod, how large its machine is,
// what keeps a pod from Fargate, and what is next for a pod that waits for its machine.
//
//	pod is made      the policy of package fargate marks it: schedulerName fargate-scheduler, the profile in a label
//	pod waits        Next: refused with a reason, or a machine is made for it, or it is bound to its machine
//	pod is deleted   its machine is deleted
//
// The id of a machine follows from the UID of its pod, so that a machine that is made twice is one machine.
//
// The rules are those of Amazon EKS (user guide, "AWS Fargate considerations", "Define which Pods use AWS Fargate" and
// "Understand Fargate Pod configuration details").
package fargate
