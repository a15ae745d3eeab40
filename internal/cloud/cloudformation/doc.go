// SPDX-License-Identifier: Apache-2.0

// Package cloudformation has the actions of CloudFormation's API about stacks, and brings stacks forward. A stack is an object
// of the management plane. Its resources are made by the actions of the account's other APIs, for the principal that asked for
// the operation or with the role that was passed: IAM decides about each of them as it is then, with aws:CalledVia.
//
// What happens if
//
//	the service is killed at any moment            the stack goes on where its object was written last; a creation that was made is found again
//	the key or session of the caller ends          the calls after that fail with the reason, and so may the rollback; DeleteStack with another key goes on
//	a right is taken away                          the same
//	a resource is used by another for five minutes   its deletion fails with what the action said
//	a request is sent twice with a client token    the second one answers as the first
//	a stack was deleted                            it is found by its ARN until a hundred others were deleted after it
//	the management plane does not answer           the stack waits, and what it imports is asked for again
//	an output cannot be evaluated                  a creation is rolled back; an update is complete, and its reason says so
package cloudformation
