// SPDX-License-Identifier: Apache-2.0

// Package vpc is the private networks that local machines live in, VPCs as EC2's: each a network namespace to which
// each machine is attached by a pair of links of its own, which routes between them, and in which clusters' API servers
// have addresses of their own.
//
//	host                                  VPC (a network namespace)                     machine
//	kube-apiserver 127.0.0.1:port <-----> endpoint, two addresses :443  \
//	  |                                                                 |
//	  +--- egress socket ---------------> machines and pods             lo   routes --- vm-ac1f0005 --- eth0 172.31.0.5
//	  +--- webhook socket --------------> what users name by URL        |
//	STS, IAM       unix socket    <-----> services .3:443               |          \-- vm-ac1f1005 --- eth0 172.31.16.5
//	machines' records, user data <------- metadata 169.254.169.254:80   |
//	machines' records        <----------- names    .2:53, 169.254.169.253:53
//	                               relay  routers  .1 of each subnet    /
//
// A VPC is described by a file in its directory (see [Description]); two may have the same range, so a machine is known
// by VPC and address. Which clusters have endpoints in it is in another file, which the [Relay] follows: clusters come
// and go without touching one another. Each has a door of its own from its API server, which leads to the machines that
// were launched for it and to its pods alone, and another to what its users name by URL, as far as security groups and
// the way out let it.
//
// A machine is known by its address. That is at one link by a route (see pin), so the answers to it go there even if
// another one asked, and the kernel drops every packet that comes from a link other than that of the route to its
// source (see setRouting). Nothing is bridged: machines see nothing of each other below IP, and what they say by ARP
// concerns nobody.
//
// The namespace is held by a mount below the state directory, so it outlives every process; the [Relay] alone can be
// killed and started again without any machine losing its network. Nothing of this has an address on the host.
package vpc
