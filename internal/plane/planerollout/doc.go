// SPDX-License-Identifier: Apache-2.0

// Package planerollout brings a control plane, of a cluster or of the account, from one configuration to another without
// a call that fails: an API server of the new configuration is started beside the one that serves, and takes its place.
//
//	newcomer   in the free slot    gets no connection until it is Ready (the first one of a cluster does)
//	serving                        gets new connections
//	draining                       gets none, and is told to end: it answers what it has begun to
//
//	the spec or the program of the server that serves changed ──► newcomer ──(Ready)──► it serves, the one before drains ──► ended ──► followers
//	                                                                └─(ends again and again, or is not Ready in time)──► ended; everything stays as it was
//
// Followers are the controller manager and the scheduler, which may not be newer than any API server: they have their new
// specs once the new server is the only one. On the way back to an older minor they go first: once the newcomer is Ready,
// they are started in the older minor, and the newcomer serves once they are Ready, too. The components that API servers
// need are changed in place, as they come.
//
// A plane can be taken back to the minor before by its [Move], which is how it came to the minor that it runs: once, and
// within seven days after an upgrade. The data in etcd stays as it is.
//
// A program has changed if its file is another one than the one that runs, whatever is in it; a rollout looks when it
// begins.
//
// The management plane of the account has no followers, and is taken to what a newer Muster wants of it.
//
// [Next] decides, and changes nothing. A [Rollout] keeps the [Record] that Next gave last beside what else is kept of the
// plane, with whole specs, and carries it out: it tells the front its servers, and the runner its list.
//
// What happens if
//
//	the service dies at any moment        the next one reads the record, carries it out again and goes on
//	it dies while a server drains         the next one waits until the server has ended, and ends the one that the runner starts
//	                                      in its place: nothing is cut
//	a newcomer does not become Ready      it ends, and the change is refused with its last words; the old spec is in the
//	                                      record, so the old server is started again should it end
//	a follower does not, on the way back  the newcomer ends, and the followers are started as they were
//	the host has no memory for both       no newcomer is started, and the change is refused with what there is and what is needed
//	several planes of a host change       one after the other: each needs the memory of a newcomer
//	an old server dies meanwhile          it is started again with its old spec, from the program that is there then, and
//	                                      the newcomer goes on
//	the spec changes again meanwhile      the newcomer is started anew, as nobody uses it yet
//	the spec is what it was again         the newcomer ends
//	two servers are to serve              each is replaced by a newcomer in the third slot, one after the other; an end of one is
//	                                      the end of its connections, and the front passes new ones to the other
//	fewer servers are to serve            the last one drains once another is Ready
//	no server serves yet                  there is nothing to keep: the newcomer has all the time it takes
//	there is no record                    the plane is new, or of a Muster from before: its one API server is the newcomer
package planerollout
