// SPDX-License-Identifier: Apache-2.0

// Package machine defines the machines of a cluster for every provider: a [Provider] launches and terminates instances,
// and gives each an address and a name that no other has until it is terminated. The [Store] keeps both on disk.
//
// [Providers] are the providers that a service has. A table beside the enum of their names says which capabilities
// their machines have ([v1alpha1.Capability]). Most capabilities are an interface of this package; a provider that is
// asked for a missing one refuses by [CannotError].
//
// Package local makes real machines out of namespaces, package simulated has records only, package fake fails on
// demand. All of them pass the suite in package machinetest.
//
//	(nothing) --Launch--> Pending --> Running --(its process ends)--> Stopped --Launch--> ...
//	     ^                                                                        |
//	     +-------------------------- Terminate, from any state -------------------+
package machine
