// SPDX-License-Identifier: Apache-2.0

// Package local makes machines out of what Linux containers are made of: each is a process that is number one of its own
// process, mount, network, UTS, IPC and control group namespaces, with a disk (a directory) that survives it.
//
// A launch goes like this, and whatever ends in the middle leaves nothing that Terminate does not find:
//
//	service (Launch)                          machine ("muster node boot", [Boot])
//	record and address on disk
//	make control groups
//	start the process in new namespaces  -->  waits on a pipe
//	move it into its control groups
//	attach it to the VPC
//	write its boot order to the pipe     -->  takes its control group namespace, builds its root, pivots into it,
//	                                          becomes "muster node" (package node), which closes the other pipe
//	read the other pipe to its end       <--  or says what went wrong
//
// The service may end at any point after that: machines are found again by marks in their environment.
package local
