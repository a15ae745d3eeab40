// SPDX-License-Identifier: Apache-2.0

// Package nodegroup keeps the machines that people ask for: it holds the controllers of the management plane's Clusters,
// NodeGroups and Machines.
//
//	NodeGroup   package plan says which machines to make and delete, and why; this package does it
//	Machine     bootstrap token → launch → Node → token removed; boots again what died; a Machine's status is the inventory
//	            that the certificate controller believes
//	Cluster     its status
//
// A Machine that is deleted has its node cordoned and its pods evicted, within a bound. Then it goes in an order that leaves
// nothing half-way: first what lets it in (token, pending CSRs), its route and its Node while its name and addresses are still
// its own, then the instance, then the pods that are left, which nobody else can know to have ended, and whatever it did in
// between.
// Every step can be repeated, so a crash anywhere is made good by the next try.
//
// What it trusts: the management plane, the provider, and of the cluster only the Node's readiness, pod range and provider id.
// What it refuses: a Node under a machine's name with another machine's provider id counts as no Node.
package nodegroup
