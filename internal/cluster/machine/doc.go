// SPDX-License-Identifier: Apache-2.0

// Package machine is what muster knows of machines, whoever provides them: a [Provider] launches instances and terminates
// them, gives each an address and a name that are its own until it is terminated, and remembers both on its disk.
//
// Package local makes real machines out of namespaces, package simulated has records only, package fake fails on demand.
// All of them pass the suite in package machinetest.
//
//	(nothing) --Launch--> Pending --> Running --(its process ends)--> Stopped --Launch--> ...
//	     ^                                                                        |
//	     +-------------------------- Terminate, from any state -------------------+
package machine
