// SPDX-License-Identifier: Apache-2.0

// Package karpentercontroller prepares a cluster for the Karpenter of its control plane (spec.compute of the Cluster),
// and takes that away again:
//
//	on    kinds and RBAC in the cluster → access of the machines' role → Karpenter's role and its policy →
//	      EC2NodeClass and NodePools → credentials, with which Karpenter starts
//	off   NodePools and NodeClaims are deleted → Karpenter drains and ends the machines → EC2NodeClasses are deleted →
//	      RBAC, role and credentials are removed → Karpenter ends
//
// The policy is that of Karpenter's guide: machines and launch templates with the tags of this cluster. Beyond the guide
// it allows the subnets and security groups of the cluster's VPC alone.
//
// What happens if
//
//	it is killed between two steps   each step is done again, and changes nothing that is as it is to be
//	it is switched off before it is prepared  what is there by then is taken away
//	people delete a NodePool         one that spec.compute names is made again; one of their own stays deleted
//	people change a NodePool         the change stays
//	people change the EC2NodeClass   what is set here is set again; other fields stay
//	the cluster is upgraded          once the API server is of the new minor, the EC2NodeClass has its image, and machines drift to it
//	the cluster is taken back        the EC2NodeClass has the image of the older minor as soon as the rollback's turn comes
//	a NodeClaim cannot be drained    Karpenter stays until it is, as a pod disruption budget says
//	people delete Karpenter's role   it is made again; Karpenter takes credentials of it at the end of the hour, or when it is killed
//	the service is away              Karpenter's calls fail, and are sent again
//
// A file beside that of the credentials tells whether a cluster has something to take away: it is there before the first step.
package karpentercontroller
