// SPDX-License-Identifier: Apache-2.0

// Package experiment decides about experiments of AWS's Fault Injection Service: what a template may hold, which
// instances a target chooses, and which drill an instance has next (package drill carries drills out). Muster has one
// action, aws:ec2:send-spot-instance-interruptions.
//
// An instance is recommended for rebalancing when the action begins, and has its notice of interruption two minutes
// before the time that the action gives it, as on EC2. An action that gives it two minutes sends the notice at once.
//
//	What happens if                              Then
//	a template has another action or resource    it is refused by name
//	the service was down when a notice was due   it is sent when the service is back, with two minutes
//	somebody ends or replaces an instance's drill  the experiment leaves the instance alone
//	two experiments choose one instance          the drill of the one before counts as the other's
package experiment
