// SPDX-License-Identifier: Apache-2.0

// Package readcache answers reads of an API server from memory, never with something older than what this process
// wrote.
//
// An informer's copy is a moment behind: a client that makes an object and reads it at once may not find it. [Writes]
// looks at the answers to all writes of the process, by its clients' transport, and remembers which version of which
// object each write made. A read of [Cache] waits until the informer has all writes that were answered before the read
// began, a quarter of a second at most, and asks the API server otherwise. So an answer has everything that any part of
// the process wrote before, of all kinds: a client whose change is done sees the change. Writes of other processes are
// seen when the watch reports them, some milliseconds later.
//
// Only reads whose context is marked by [Allow] come from memory. A part that reads in order to write leaves the mark
// out.
//
// What happens if
//
//	a write's answer does not come        it may have been made or not: reads of that kind ask the API server for ten seconds
//	the watch is interrupted              reads that wait for a write of this process ask the API server; others have what was known
//	the API server is away                the same; nobody can change anything meanwhile
//	a kind has not been listed yet        reads ask the API server
package readcache
