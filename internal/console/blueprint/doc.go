// SPDX-License-Identifier: Apache-2.0

// Package blueprint describes a cluster with its node groups, or a node group for a cluster that exists, as the console's form and
// endpoints take it, and renders it: as requests of the EKS API, as a file for eksctl, as commands of AWS's CLI, and as Muster's own objects.
// The four say the same, which a test shows by the EKS API's own handlers.
//
// Everything that a client could choose is in each rendering, also where it has the default value: defaults of eksctl, of EKS and of Muster differ.
//
// What happens if
//
//	several fields are wrong       [Blueprint.Problems] names all of them, each with its field; nothing is rendered
//	a field is not known           [ParseCluster] and [ParseGroup] refuse it
//	the network is not there       whoever creates says so: this package reads nothing
package blueprint
