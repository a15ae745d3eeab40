// SPDX-License-Identifier: Apache-2.0

// Package vpccontroller is the controller of VPCs and their subnets: it keeps the description of each network on disk
// as its objects say, makes and removes the network, and has a process of its own run for each.
//
// It checks rules that the API server cannot check (see plan): a subnet is within its VPC's range, apart from the other
// subnets and in a zone of the region. A subnet that breaks a rule is refused in its condition Ready, and changes
// nothing.
//
// What happens if:
//
//	a Subnet is deleted that has machines      it stays until they are gone, and its condition says which; no new ones come into it
//	a VPC is deleted that has subnets          it stays until they are gone; new ones are refused
//	a second VPC says that it is the default   it is refused: the one that was made first is
//	a VPC is made over the host's balancers    it is refused, and looked at again later: the host's range may be another one by then
//	two subnets overlap                        the one that is in use already counts, else the older one
//	the service is killed at any moment        the next one does the same steps again
package vpccontroller
