// SPDX-License-Identifier: Apache-2.0

// Package memorylimit holds programs to an amount of memory, each in a control group of its own. It uses the memory
// controller of either version (Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst of the kernel), and
// swap does not extend the amount.
//
// What happens if
//
//	a program reaches its limit           the kernel ends a process of its group, and none outside; Report counts it until the group is made anew
//	the whole host has no memory left     the kernel may end the program, too; Report does not count that
//	the limit is raised                   it is in force at once
//	the limit is lowered below what is    the error is an InUse, and the limit before stays: version 1 refuses it, and version 2,
//	in use                                where the kernel would end the program, is not asked
//	a program that runs is taken in       what it has so far is not counted, and all that it takes from then on is
//	this process is killed                groups stay as they are, and are found again by their names
package memorylimit
