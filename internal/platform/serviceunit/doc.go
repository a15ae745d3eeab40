// SPDX-License-Identifier: Apache-2.0

// Package serviceunit has the unit of systemd that brings an installation back after a reboot: how its file reads, who may
// write it, and how it goes. A state directory has one unit, whose name follows from the directory alone, so several
// installations live side by side.
//
// The unit starts the service and ends; the processes stay in its control group. Muster supervises them itself, so a
// restart or a stop of the unit ends none of them.
//
// The package trusts a file only by its first line, which names the state directory.
//
// What happens if
//
//	a file of that name has another first line   nothing is written or removed
//	the installation's programs moved            the file is written anew, and the unit restarted
//	systemd does not run on the host             the file is written or removed, and nobody is told of it
package serviceunit
