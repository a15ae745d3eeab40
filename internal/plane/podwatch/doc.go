// SPDX-License-Identifier: Apache-2.0

// Package podwatch keeps the pods and service accounts of one cluster in memory by a watch, for those who decide about
// the identities of pods: a pod that is deleted, or whose service account is, is gone here within a second, and no
// token costs a request to the API server.
//
// It trusts the API server that it watches. It keeps no more of a pod than says whose it is and where it runs, and no
// part of its containers, environment or volumes.
//
// What happens if
//
//	a pod is newer than the watch   Exists asks the API server about a pod whose token is less than 30 s old, 20 times a second at most
//	the watch is interrupted        what was known holds for 2 s; then Exists asks the API server, whose answer holds for a second
//	nothing has been listed yet     Find says ErrNotReady: nobody is taken for gone, and nobody for there
//	the API server is away          what was known stays: without it no pod can be deleted either. The watch goes on within a second
//	                                after it is back
//	a pod is made again by its name it is another pod: it has another UID
package podwatch
