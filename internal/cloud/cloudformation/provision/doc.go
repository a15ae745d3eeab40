// SPDX-License-Identifier: Apache-2.0

// Package provision carries out the calls of a CloudFormation stack: it creates, updates and deletes a resource by the
// actions of the account's own APIs, and IAM judges each of them as any other request. It keeps nothing. Each call is
// made again until it has ended, and has the same effect however often it is made:
//
//	a creation whose action takes a client token      the token is that of the resource
//	a creation of a resource with tags                the resource is looked for by the tag of the creation before it is made
//	a creation of a resource with a name              a name that is taken is the resource's own if it has the tag of the creation
//	a creation that puts a value                      the value is there already, and is the same
//	an update                                         what differs is changed; EKS's updates have a client token for each operation
//	a deletion                                        what is gone is deleted
//
// What happens if
//
//	an action is refused                              the call has failed, with the reason of the action
//	the service that is asked is away or throttles    the call is pending
//	the process ends after the creation               the next call finds the resource
//	somebody else makes what the creation looks for   it is not found: the tag is made of a secret of the stack
//	a creation cannot be completed                    the call has failed and has the physical id, so that a rollback deletes the resource
//	a resource depends on the one that is deleted     the call is pending, as the other may be on its way out; the caller bounds that
package provision
