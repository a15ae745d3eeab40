// SPDX-License-Identifier: Apache-2.0

// Package fis has the actions of AWS's Fault Injection Service about experiment templates and experiments, as far as
// they interrupt spot instances: what Karpenter's and other people's tests of interruptions call. Templates and
// experiments are records of the management plane; package experiment decides what is in one and which drill an
// instance has next, and the controllers of machines carry drills out, which EventBridge tells of (package events).
//
// An experiment does what its role may do: the role must let fis.amazonaws.com in, and its policies must allow
// ec2:SendSpotInstanceInterruptions for each instance. Who makes a template needs iam:PassRole for the role.
//
//	What happens if                                     Then
//	the service is killed in an experiment              the next one goes on with it: the record and the drills say how far it is
//	the service is killed between a record and a drill  the drill is written then; one that is there is not written again
//	a request comes twice with its client token         the second one finds what the first made
//	an experiment is stopped                            its drills end, and what they announced does not happen
//	a template is deleted while an experiment runs      the experiment has a copy
//	the role may not, or a target resolves to nothing   the experiment is failed, with the reason; no instance is touched
//	an experiment has ended                             it is kept, the newest 100 of them
package fis
