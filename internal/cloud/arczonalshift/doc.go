// SPDX-License-Identifier: Apache-2.0

// Package arczonalshift has the actions of ARC's zonal shift: a cluster is moved away from one availability zone for a
// while. The resources that can be shifted are the account's clusters whose zonalShiftConfig is enabled. Package
// zonalshiftcontroller carries shifts out; here are the rules of requests (package zonalshift) in ARC's words.
//
// Zones are answered by their ids (use1-az1), and taken by id or name.
//
// What happens if
//
//	a resource is another account's            ResourceNotFoundException, which names both accounts
//	a cluster has no zonal shift enabled       ResourceNotFoundException, with how to enable it
//	a shift of the cluster is active           ConflictException, reason ZonalShiftAlreadyExists, with its id
//	a shift has ended that is to be changed    ConflictException, reason ZonalShiftStatusNotActive
//	a shift's expiry has passed                it is EXPIRED from that moment on, also while nobody has undone it yet
//	the cluster is deleted                     its shifts are gone with it
package arczonalshift
