// SPDX-License-Identifier: Apache-2.0

// Package balancer passes connections of clients to the targets of load balancers: the process `muster balancer`, one
// for each VPC that has any.
//
//	host     an address of its loopback, or of a range     \
//	                                                        >  muster balancer  --->  pods, or node ports
//	VPC      an address in it for each balancer            /
//
// The list of load balancers is a file, which the service writes and the [Server] follows ([vpc.Network.Balancers]).
// The process needs nothing else, so traffic goes on while the service and the API servers are away.
//
// It trusts the file, which only its owner can write, but not the addresses of targets in it, which come from
// EndpointSlices: [vpc.Dialer] admits machines and pods of the balancer's own cluster and nothing else.
//
// A balancer can have an address that other hosts reach, if the owner of the host chose such a range. It believes
// nothing about a client but the address that its packets come from; source ranges are compared with that.
//
//	a target refuses or does not answer    the connection goes to the next one: nothing of it was passed on yet
//	a target fails its checks              it gets no connections while another one passes
//	all targets fail their checks          all are tried
//	no target is left                      the connection is reset
//	a target is draining                   its connections go on; new ones go to others
//	the port is taken on the host,
//	or the host has no such address        it is tried again every 5 s; the status says so
//	a balancer is removed                  its connections are closed
//	the process is killed                  its connections break; it listens again within a second or so
//
// The bytes of a TCP connection are moved by the kernel (splice(2)).
package balancer
