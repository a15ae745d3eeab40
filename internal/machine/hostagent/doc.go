// SPDX-License-Identifier: Apache-2.0

// Package hostagent is the one door to a host: what controllers have done on it for machines goes through [Host].
// [Agent] is the host of this process. A [Server] answers for it by TLS and a [Client] asks, so that a host elsewhere is the
// same to controllers, which hold a [machine.Providers] in either case (see [Providers]).
//
//	controller -> machine.Providers -> Host = Agent ----------------------------> provider, of this host
//	                                   Host = Client --mTLS--> Server -> Agent -> provider, of the other host
//
// Requests and answers are plain data. Launch attaches a machine to the network of its VPC and shows it the images of
// its cluster, and Terminate ends both: nobody asks for either alone. A volume that is mounted is named, and the host
// opens it. Images come as an archive, and are shown to machines that run and to those that Launch makes later.
//
// Work that a host does by itself, such as answering its machines' requests for loop devices, does not go through the
// door.
//
// The server trusts one client, by its common name, and by it only that it is the account: a request is bounded, has no
// unknown field, and each name in it that becomes a path, a link or a rule is checked. The client trusts the server of
// one common name, and refuses an answer about another machine than it asked for.
//
// What happens if
//
//	the host is away, or an answer is lost    an error; each operation may be asked for again and takes effect once
//	the client goes away                      the operation's context ends, as in one process
//	the host refuses                          the error has the text that it has on the host, and errors.Is finds the same sentinel
//	the server ends                           connections into machines end with it, and sockets there; machines run on
package hostagent
