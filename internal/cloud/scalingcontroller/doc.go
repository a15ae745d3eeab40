// SPDX-License-Identifier: Apache-2.0

// Package scalingcontroller holds the controller of AutoScalingGroups: package scalingplan says what is next, and this package
// does it. It launches and ends instances, has lifecycle hooks hold them, replaces outdated ones, and carries out scheduled
// actions, those of node groups, too.
//
// An instance is written into the group's status, with its id, before its Machine is made. The Machine has that name and
// names the group. An end is written before the Machine is deleted.
//
// What happens if
//
//	the service is killed before a Machine is made     its successor makes the Machine of the same id
//	the service is killed after a Machine is made      its successor finds the Machine
//	a Machine names the group and is not in its status it is taken in, and counts
//	a Machine names a group that is gone               it is deleted
//	the service is killed while an instance is detached it is in the status, and detached by the successor
//	a launch fails                                     an activity says why; the next try is elsewhere, or there after a pause that doubles
//	a Machine is deleted by somebody else              the group replaces it
package scalingcontroller
