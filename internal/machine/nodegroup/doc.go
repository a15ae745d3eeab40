// SPDX-License-Identifier: Apache-2.0

// Package nodegroup holds the controllers of the management plane's NodeGroups, Machines and Clusters: they launch the
// machines that a NodeGroup asks for, bring them into the cluster, and drain and terminate them.
//
//	NodeGroup   package plan says which machines to make and delete, and why; this package does it
//	Machine     bootstrap token → launch → Node → token removed; a stopped one is booted again; a Machine's status is the
//	            inventory that the certificate controller believes
//	Cluster     its status
//
// A Machine that is deleted has its node cordoned and its pods evicted, within a bound. Then it is removed in an order
// that leaves nothing half-way. Its token, pending CSRs, route and Node go first, while its name and addresses are
// still its own. Then the instance ends. Then its remaining pods are deleted, since nothing else knows that they ended,
// and the traces of its last moments. A Node with volumes goes after the instance, since the Node says when the volumes
// may move. Every step can be repeated, so the next try makes up for a crash at any point.
//
// It trusts the management plane, the provider, and of the cluster only the Node's readiness, pod range and provider
// id. It ignores a Node under a machine's name with another machine's provider id. A Node with a name or provider id of
// the form of a machine's is deleted, each time that it appears, if no Machine of the cluster has that name and no host
// of that name was registered (stranger.go).
package nodegroup
