// SPDX-License-Identifier: Apache-2.0

// Package eks has the actions of EKS's API, over the Clusters and NodeGroups of the management plane. There is nothing
// beside the objects: what kubectl makes is in the API, and the reverse. An action that changes something reads objects
// from the API server; one that describes may have them from memory, which is never older than what the service wrote
// (package readcache).
//
// The actions of a noun are a package, an action is a file of it, and Register of the package has the list. An action
// says which resources IAM is asked about, and does it; package awsfront does the rest. Times, names and messages are
// those of EKS, because tools compare them.
//
// Where EKS has a choice that Muster cannot honour, the request is refused with InvalidParameterException and the name
// of the parameter. Choices that have no effect here are kept in spec.eks of the Cluster or NodeGroup.
//
// What happens if
//
//	a create is sent twice with one token      the second is answered with what the first made
//	the service is killed before the write     nothing was done
//	it is killed after the write               the object is there, and its controllers go on with it
//	another change is sent during an update    refused with ResourceInUseException, unless it is the same request
//	two creates of one name come at once       the API server makes one; the other is told that it exists
//	a node group is made while its cluster is  refused, or the cluster waits for the node group to be deleted: its controller keeps it
//	deleted
package eks
