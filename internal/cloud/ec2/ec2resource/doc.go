// SPDX-License-Identifier: Apache-2.0

// Package ec2resource has what the nouns of EC2 do alike with resources, and what several of them read: objects and
// records by id, tags and who may change them, what IAM is asked about, how Describe actions choose, errors, and the
// VPCs, subnets and security groups that others lie in.
//
// A noun says here, when it is registered, what keeps a VPC or a subnet from being deleted, and what goes with it.
package ec2resource
