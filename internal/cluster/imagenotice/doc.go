// SPDX-License-Identifier: Apache-2.0

// Package imagenotice is a controller that writes an Event for each pod whose image no machine has got from a registry, with the reason first and the command that
// loads it: an image that was built on this host and not loaded is looked for at docker.io, and the kubelet's Event speaks of the status of an HTTP request first.
//
//	Warning ImageNotLoaded   image myapp:dev is not loaded, and docker.io answers 401 Unauthorized. If it was built here: docker save myapp:dev | muster image load
//
// An Event is written once for each pod and image, and again when the API server has dropped it, which it does after an hour. The kubelets' Events are read for that;
// whoever writes such an Event gets one more about the same pod, in the same namespace, and nothing else.
package imagenotice
