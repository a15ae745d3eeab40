// SPDX-License-Identifier: Apache-2.0

// Package autoscaling has the actions of Auto Scaling's API, over the NodeGroups and Machines of the management plane.
// Each node group has one Auto Scaling group, with the name that DescribeNodegroup tells: eks-NAME-UID. There is
// nothing beside the objects: a change of the group is one of the node group, and what a group has done follows from
// its machines, those included that were terminated within the last hour.
//
// What happens if
//
//	a machine is terminated with a decrement   one write makes the group smaller and names the machine; sent again, it is done once
//	the service is killed after that write     the controller of node groups ends the machine
//	a machine is terminated without            its Machine is deleted, and the group replaces it
//	a machine of a group is stopped            it is unhealthy, and the group replaces it
//	HealthCheck or ReplaceUnhealthy is suspended, or Terminate   a stopped machine stays
//	another process is suspended               that is kept and read back, and nothing else
//	a group is made or deleted by itself       not yet: groups are those of node groups
package autoscaling
