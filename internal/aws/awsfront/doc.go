// SPDX-License-Identifier: Apache-2.0

// Package awsfront is the one front of all AWS APIs: it owns the listeners of people and of machines, hands a request
// to the service that it is signed for, finds the action, has a [Gate] prove the sender and ask IAM, decodes the input,
// does the action, writes the answer in the protocol of the service, and the request's line of the log. An action is
// registered with [Register] and knows nothing of HTTP. The gate is the identity service, which registers the actions
// of STS and IAM as other services do theirs.
//
// A request goes through these steps, and the first that fails answers it:
//
//	body          read to its end, within a bound
//	operation     by the protocol's rule; the refusal is told to proven senders only, but by STS and IAM to everybody
//	sender        the signature, the clock, the rate of the key; an action that is registered as unsigned needs none, if the gate knows it as such
//	list          what the account refuses, or nobody has written yet, is told with the reason
//	rate          of the user or role, by class of actions
//	input         decoded and checked by the table; a parameter that the action would ignore is refused
//	rights        IAM, for each resource that the action is about
//	action        its own checks, and its effect
//	rights again  before the first write, for who lost the key or the rights while the action waited for others
//
// What happens if
//
//	an action panics                     500 InternalFailure; the log has the panic under the request's id
//	an answer does not fit the table     the same: half an answer is none
//	the sender goes away                 what was begun is finished, unless the action says otherwise
//	the management plane is away         503 for changes, which SDKs try again; what is described is what was known
package awsfront
