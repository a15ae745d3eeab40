// SPDX-License-Identifier: Apache-2.0

// Package podnotice is a controller that writes an Event for each pod that waits for something of which the kubelet's
// own Event says only how it failed, with the reason first and what to do:
//
//	ImageNotLoaded             no machine has got its image from a registry. An image that was built on this host and not loaded is looked for at docker.io, and
//	                           the kubelet's Event speaks of the status of an HTTP request first
//	UserNamespaceNotSupported  it has hostUsers: false, and its machine has no ids for that
//
// An Event is written once for each pod and what it lacks, and again when the API server has dropped it, which it does
// after an hour. The kubelets' Events are read for that; whoever writes such an Event gets one more about the same pod,
// in the same namespace, and nothing else.
package podnotice
