// SPDX-License-Identifier: Apache-2.0

// Package elasticloadbalancing has the describing actions of Elastic Load Balancing, of both its versions: Classic Load
// Balancers (2012-06-01), and application and network load balancers (2015-12-01). An account of Muster has neither:
// Services of type LoadBalancer get addresses of Muster's own (package balancerstore). Tools that delete a cluster ask
// which load balancers are left of it, wait until a name is not found any more, and need these answers:
//
//	What happens if                        Then
//	all are asked for                      an empty list
//	one is asked for by its name or ARN    LoadBalancerNotFound or TargetGroupNotFound
//	anything else is asked for             refused by the list of actions, with what there is instead
package elasticloadbalancing
