// SPDX-License-Identifier: Apache-2.0

// Package balancerplan decides what load balancer a Service of type LoadBalancer gets: listeners, targets and their
// state, who may connect, and the Events that tell people what was refused, ignored or cannot work. It reads the
// Service, its EndpointSlices and the Nodes, and does no I/O.
//
// It trusts none of them with an address: the process that connects asks the VPC whether a target is a machine or a pod
// of the cluster.
//
// A Service that asks for something impossible, such as TLS at the balancer, is refused as a whole: a balancer that
// served it in another way would look like a working one. An annotation without an effect on what is served is ignored,
// and an Event says so.
package balancerplan
