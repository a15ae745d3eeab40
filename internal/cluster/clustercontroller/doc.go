// SPDX-License-Identifier: Apache-2.0

// Package clustercontroller is the controller of Clusters: it has the service run what a Cluster object says, and
// removes what is deleted. It also is the controller of the namespaces of the management plane, which runs none of
// upstream's.
//
// While a cluster is served its own controllers keep the status of its object (package nodegroup). Before, after, and
// for an object that is refused, the condition Ready is written here, so that no Cluster is without one.
//
// What happens if:
//
//	a Cluster has a name or namespace that does not follow from spec.name   it is refused (WrongName), and nothing is started
//	the host has no memory for another control plane                        it is refused (InsufficientMemory), looked at again every 10 s; the others are not touched
//	a Cluster is deleted that has node groups                               it goes on and its condition names them (NodeGroupsExist)
//	a namespace is deleted                                                  its node groups go, then its Cluster, then everything else, then itself
//	the service is killed at any moment                                     the next one does the same steps again
//	the finalizer is taken off by hand                                      the cluster goes on, and its object is made again at the next start
package clustercontroller
