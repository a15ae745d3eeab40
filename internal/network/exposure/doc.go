// SPDX-License-Identifier: Apache-2.0

// Package exposure is a controller that writes an Event for each Service of type LoadBalancer or NodePort, with the
// places from which the Service can be reached: only the VPC reaches the addresses of nodes. It does not change
// Services.
//
//	LoadBalancer of another's class, without an address for 10 s   Warning NoLoadBalancer
//	LoadBalancer in a cluster of simulated machines                Warning NoLoadBalancer
//	NodePort                                                       Normal  OnlyInVPC
//
// An Event is written once and again when the API server has dropped it, which it does after an hour. Its name is made
// of the Service's UID, so that it is the same whatever becomes of the service in between.
package exposure
