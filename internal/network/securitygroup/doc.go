// SPDX-License-Identifier: Apache-2.0

// Package securitygroup renders the security groups of a VPC as one nftables ruleset for the VPC's network namespace.
//
// A machine's traffic is what comes from or goes to its link, its pods' included: the routes of the VPC decide which
// link that is, and the kernel drops what comes from another one. Members of groups are therefore sets of links, and of
// the addresses of API servers' endpoints, which are the namespace's own:
//
//	machine -> machine     hook forward    the sender's egress rules, then the receiver's ingress rules
//	machine -> endpoint    hook input      the same
//	endpoint -> machine    hook output     the same, as from an endpoint to another or to a load balancer
//	host's SSH -> machine  hook output     the receiver's ingress rules, as what comes from its router
//	machine -> DNS, metadata, STS          always, as on EC2
//
// Rules are asked about the first packet of a connection. A connection that was let through goes on when its rule is
// revoked, as on EC2. A packet that no rule lets through is dropped: a machine in no group, or in a group without a
// description, gets and sends nothing.
//
// A range of addresses in a rule also means the machines that have an address in it, with their pods: on EC2 pods have
// addresses of the VPC.
package securitygroup
