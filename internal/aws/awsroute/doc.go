// SPDX-License-Identifier: Apache-2.0

// Package awsroute finds the service and the action of a request, and refuses those that the account does not answer.
//
// One endpoint answers all services. A request's service is the one that it is signed for: the third part of the
// credential's scope. The form of the request says the protocol, also for services that are not here, since a client
// reads the errors of its own protocol alone.
//
//	What happens if                                      Then
//	the service is not on the list                       404 UnknownOperationException, in the form that the request has
//	the action is not on the list                        InvalidAction, or UnknownOperationException in JSON
//	the list refuses the action                          400 with the list's reason
//	nobody has written the action yet                    400, and the message says so
//	a request is signed for one service and sent         the signature counts, and the other service's action is unknown
//	to another's target
//	a request is not signed                              its version or target names the service; whether it may be
//	                                                     unsigned is decided where signatures are checked
//
// Nothing here is a server's fault: SDKs would ask again, nine times in a hundred seconds.
package awsroute
