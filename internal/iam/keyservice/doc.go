// SPDX-License-Identifier: Apache-2.0

// Package keyservice is how a cluster's authenticator asks muster's identity service whose access key signed a request, from both
// ends of a unix socket: a [Client] that asks, and a Server that answers from what it keeps.
//
//	POST /v1/resolve            Query           → 200 Answer, 404 Refusal ("no"), anything else: could not tell
//	POST /v1/role-credentials   InstanceQuery   → 200 RoleCredentials, 404 Refusal
//	GET  /v1/changes            → 200, lines of Event without end: the first at once, then a heartbeat each second
//
// The second is for instance metadata and controllers, which have a socket of their own where there is no first: whoever takes over an
// authenticator does not have the credentials of every node. Changes are told on both.
//
// Bodies are JSON. The answer to a query holds a signing key that is derived for one day, region and service (SigV4's kSigning):
// whoever has it can neither sign for another day or service nor find the secret. The socket is mode 0600 and both ends look at who
// the other one is (SO_PEERCRED), so nothing else on the host takes part.
//
// What was answered may be used until Answer.ValidUntil, as long as the stream of changes is alive: a key, role or instance that
// ends is told on it at once. A client that has heard nothing for [StaleAfter] asks for every request again.
package keyservice
