// SPDX-License-Identifier: Apache-2.0

// Package nodehealth turns what a machine finds out about itself into conditions and Events of its Node, under the names
// and reasons of EKS's node monitoring agent 1.7.0 (aws/eks-node-monitoring-agent, docs/node-health-issues.adoc).
//
// Its users' main complaint is false alarms, so
//   - a condition is False only after the same thing was found at several of the last looks, and True again after none of
//     them found it; the agent of EKS leaves a condition False until the node is gone,
//   - nothing is said of what could not be looked at, and no condition is there before the first look,
//   - nothing is taken from what machines of a host share: the kernel's log, clock, open files and load of disks.
//
// Requests are few: conditions are written when one changes, and otherwise at each heartbeat.
package nodehealth
