// SPDX-License-Identifier: Apache-2.0

// Package joinlog reads the steps of each machine's join, with their times, from the audit log of the cluster's API
// server. Nothing has to be installed on the machine, and nothing that the machine says about itself is used.
//
// A [Tracker] turns events into steps and does no I/O; a [Follower] reads the log and feeds the tracker. The steps
// Launched and Ready are not in the log: the machine controller, which launches machines and watches Nodes, adds them
// with [Merge].
//
// How an event finds its machine:
//
//	requests with the bootstrap token   the token's group names the machine: system:bootstrappers:muster:<machine>
//	a client CSR made with it           the same group; its name then stands for the machine in approval and issue,
//	                                    and its CN, once issued, binds the node's name to the machine
//	requests of a node by its role      the name of its session is the machine's, and binds the node's name to it
//	Node and serving CSR                made by system:node:<node>, which is bound by then
package joinlog
