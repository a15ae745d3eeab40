// SPDX-License-Identifier: Apache-2.0

// Package launchtemplate has what EC2's launch templates say: which members their data may have, which of those Muster
// honours, versions, and what a node group takes of one.
//
// Data is kept as it was given, because Terraform plans to change what is answered otherwise. A member that Muster
// cannot honour is refused when the version is made. Members without a meaning here are kept where they do no harm:
//
//	BlockDeviceMappings                    but the VolumeSize of the root device, which is the size of a machine's disk
//	EbsOptimized, Monitoring               there are no volumes, and no CloudWatch
//	CreditSpecification                    processors earn no credits
//	TagSpecifications of other than instances
//	AssociatePublicIpAddress, DeleteOnTermination and Description of a network interface
//
// EnclaveOptions and HibernationOptions are taken if they are off. InstanceMarketOptions can ask for spot instances of
// one-time requests that interruptions terminate: an instance that is launched of such data is a spot instance, and launches
// whose market somebody else decides (a fleet's, or those of a policy of mixed instances) are refused. EKS allows them in no
// template of a node group.
package launchtemplate
