// SPDX-License-Identifier: Apache-2.0

// Package joinlog tells when a machine took each step on its way into the cluster, from what the cluster's API server writes
// down about it: its audit log. Nothing has to be installed on the machine, and nothing the machine says of itself counts.
//
// A [Tracker] turns events into steps and does no I/O; a [Follower] reads the log and feeds the tracker. The steps Launched
// and Ready are not in the log: whoever launches machines and watches Nodes adds them with [Merge].
//
// How an event finds its machine:
//
//	requests with the bootstrap token   the token's group names the machine: system:bootstrappers:muster:<machine>
//	a client CSR made with it           the same group; its name then stands for the machine in approval and issue,
//	                                    and its CN, once issued, binds the node's name to the machine
//	requests of a node by its role      the name of its session is the machine's, and binds the node's name to it
//	Node and serving CSR                made by system:node:<node>, which is bound by then
package joinlog
