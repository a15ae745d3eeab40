// SPDX-License-Identifier: Apache-2.0

// Package planefront is the front of the API servers of a plane, a cluster's or the account's: the process that owns the
// published address, and passes each connection to an API server that is ready. API servers come and go behind it, at
// ports of their own, and no client sees it.
//
//	client ──► front 127.0.0.1:PORT ──┬─► kube-apiserver, ready            gets new connections
//	                                  ├─► kube-apiserver, draining         keeps those that it has
//	                                  └─► kube-apiserver, not ready (yet)  gets none while another server is ready
//
// Which servers there are is a file, which the service replaces and the front follows (package frontservers). The front
// asks each server once a second for /readyz, and ten times a second while none is ready. It knows nothing else and keeps nothing, so planes answer while the service
// is away.
//
//	a server ends                   /readyz fails from the SIGTERM on: new connections go to others, those there are
//	                                stay until the server has answered them
//	no server is ready              a connection waits for a moment, then goes to any server that accepts it: what an
//	                                API server says of itself is worth more than a reset
//	a server is killed              connections that it has not answered yet go to another one, or to it when it is back;
//	                                those that it has answered break
//	no server accepts               the connection is reset
//	the front is replaced           the next one takes the listener over (SCM_RIGHTS), this one accepts nothing more and
//	                                ends with its last connection, or after a day
//	a front hangs                   the next one ends it after a while
//	a file cannot be read           servers and authority stay as they are; a front that has no servers yet ends
//	descriptors are few             fewer connections are passed on, before one that is open or a probe lacks any
//	a connection is reset           the other side's is
//	the front is killed             its connections break
//
// The front ends no TLS: it sees bytes, and no server sees the client's address.
package planefront
