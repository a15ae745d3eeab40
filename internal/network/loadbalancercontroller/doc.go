// SPDX-License-Identifier: Apache-2.0

// Package loadbalancercontroller is the controller that gives the Services of type LoadBalancer of one cluster their
// load balancers: it decides by package balancerplan, has the addresses and settings kept on disk, from where the
// process of the balancers follows, and publishes an address once something listens there.
//
// It trusts the cluster's API server about Services, EndpointSlices and Nodes, as far as package balancerplan does.
// Services of other classes and types are left as they are.
//
//	a Service is deleted               it stays, by its finalizer, until its addresses are freed
//	the controller was away meanwhile  balancers whose Service is gone are removed at the next start
//	the API server is away             balancers serve what they served
//	nothing listens                    the Service has no address, and an Event says why
//	the balancers' process is away     what was published stays; the process is started again
package loadbalancercontroller
