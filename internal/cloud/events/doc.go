// SPDX-License-Identifier: Apache-2.0

// Package events has the actions of EventBridge's API about the rules of the account's default event bus, and the bus: it
// takes the events of the account's instances and those of PutEvents, and sends each to the queues of the rules whose
// pattern it matches. Rules and targets are records of the management plane. Targets other than SQS queues, schedules and
// other buses are refused.
//
// A queue takes an event only if its own policy lets events.amazonaws.com send for the rule (package sqs). A source that
// begins with "aws." is the account's own: PutEvents refuses it, and PutTargets refuses an Input with such a source, so that
// no rule sends an interruption that the account did not.
//
// What happens if
//
//	PutEvents was answered for an event       it is in each queue that takes it
//	the service is killed before the answer   the event may be in some of the queues: who sends again may send it twice
//	a queue's policy refuses an event         it is dropped, as EventBridge does in the end, and the log has a line with the reason
//	a queue is full, or takes no message of the size  the event is dropped for it, with a line in the log
//	a queue cannot be written                 PutEvents answers InternalException for the event
//	a queue cannot be written for an event of an instance  the event is sent again at the next four looks; other events do not wait for it
//	the service was down when an instance changed its state  the notification is sent when it is back
//	the service is killed between a notification and its note  the notification comes twice
//	there are no rules                        no states are looked at
//	a drill announces an interruption                 the event is sent once for each drill
package events
