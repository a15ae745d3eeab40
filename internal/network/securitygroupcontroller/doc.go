// SPDX-License-Identifier: Apache-2.0

// Package securitygroupcontroller is the controller of SecurityGroups: it keeps the rules of each VPC in force as the
// objects say, and makes the groups that VPCs and clusters come with.
//
// What happens if:
//
//	a rule is taken away                       new connections are refused; those that it let through go on, as on EC2
//	a group is deleted that machines are in    it stays in force until they are gone, and its condition says which
//	the group "default" of a VPC is deleted    it stays until the VPC goes; the same is so of a cluster's group and its cluster
//	a rule names a group that is not there     it lets nothing through
//	rules cannot be put in force               those that are in force stay; the condition Ready of the groups says why
//	the service is killed at any moment        the next one puts in force what the objects say; until then what is in force stays
package securitygroupcontroller
