// SPDX-License-Identifier: Apache-2.0

// Package vpc is the private network that local machines live in: a network namespace with a bridge, to which each machine
// is attached by a pair of links, and in which the API server has an address of its own.
//
//	host                                  VPC (a network namespace)                 machine
//	kube-apiserver 127.0.0.1:port <-----> ENI      .2:443  \
//	STS, IAM       unix socket    <-----> services .3:443  |
//	  |                            relay                     bridge vpc0 --- link --- eth0 .11
//	  +--- egress socket ---------------> router   .1      /
//	machines' records, user data <------- metadata 169.254.169.254:80
//	machines' records        <----------- names    .2:53
//
// A machine is known by its address, so no other machine may receive answers to it: the bridge does not learn addresses, they are
// set (see pin). The answer to a packet with another machine's address goes to that other machine.
//
// The namespace is held by a mount below the state directory, so it outlives every process; the [Relay] alone can be
// killed and started again without any machine losing its network. Nothing of this has an address on the host.
package vpc
