// SPDX-License-Identifier: Apache-2.0

// Package ec2 has the actions of EC2's API, over the objects of the management plane. There is nothing beside the
// objects: what kubectl makes is in the API, and the reverse. An action that changes something reads objects from the
// API server. An action that describes may read them from memory, which is never older than the service's own writes
// (package readcache).
//
// A noun is a package below this one, with a type that has its actions; its first file has the registration, how the
// noun is shown, its filters and its tagger. An action has a file of its own where it decides more than a few lines.
// Codes, messages and times are those of EC2, because tools compare them. A parameter that EC2 knows and Muster cannot
// honour is refused, never ignored.
//
// What happens if
//
//	a request has DryRun                       all is checked, and nothing is done: the answer is DryRunOperation
//	a create is sent twice with one token      the second is answered with what the first made
//	the service is killed before the write     nothing was done
//	it is killed after the write               the object is there, and its controllers go on with it
//	the management plane is away               Unavailable, which SDKs try again
package ec2
