// SPDX-License-Identifier: Apache-2.0

// Package local makes machines out of Linux namespaces and control groups: each machine is a process that is number one
// of its own process, mount, network, UTS, IPC and control group namespaces, with a disk (a directory) that survives
// it.
//
// These are the steps of a launch. Terminate finds everything that a launch leaves which ends at any of them:
//
//	service (Launch)                          machine ("muster node boot", [Boot])
//	record and address on disk
//	make control groups, as large as the instance type, and bound all machines together
//	start the process in new namespaces  -->  waits on a pipe
//	move it into its control groups
//	attach it to the VPC
//	write its boot order to the pipe     -->  takes its control group namespace, builds its root, pivots into it,
//	                                          becomes "muster node" (package node), which closes the other pipe
//	read the other pipe to its end       <--  or reports the error
//
// The service may end at any point after that: machines are found again by marks in their environment.
package local
