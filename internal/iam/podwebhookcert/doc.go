// SPDX-License-Identifier: Apache-2.0

// Package podwebhookcert keeps the serving certificate of the pod identity webhook in a cluster that has nobody else to
// do so: a certificate authority in a Secret, which its replicas share, a certificate of it for each replica, and the
// authority in the webhook's configuration, where the API server finds it. AWS's webhook asks for a certificate of the
// signer kubernetes.io/legacy-unknown instead, which nobody approves by default.
//
// Whoever reads the Secret can pass for the webhook, which changes every new pod; so the Secret is in a namespace of
// its own, exists beforehand, and the webhook may get and update that one and no other.
//
// What happens if
//
//	two replicas start at once             the Secret's version lets one write an authority; the other reads that one
//	the authority has a fifth of its life left   the webhook puts a new one before it; both are believed, and replicas change over a round later
//	somebody empties the Secret            an authority is made, the old one is believed no more, and every replica gets a certificate of the new one
//	somebody applies the manifests again   the configuration's authority is put back within half a minute if it was removed
//	the API server is away                 the replica goes on with what it has, and looks again in five seconds
package podwebhookcert
