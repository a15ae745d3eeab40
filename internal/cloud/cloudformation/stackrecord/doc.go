// SPDX-License-Identifier: Apache-2.0

// Package stackrecord keeps CloudFormation's stacks as objects of the management plane. A stack is one object, which one
// write changes: what people may see is in its spec and status, and what has secrets (parameters, properties, attributes, whose
// rights are used) is sealed in it with a key that is a file of the account.
//
// What happens if
//
//	the process ends between two writes     the stack is as the last one left it
//	two write one stack at once             the second reads it again and decides anew
//	the key is lost or another one          stacks cannot be read, which is told by name; they are never begun anew
//	events are more than 500                the oldest are forgotten
package stackrecord
