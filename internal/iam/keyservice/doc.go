// SPDX-License-Identifier: Apache-2.0

// Package keyservice looks up the principal of an access key over a unix socket: a [Client] for a cluster's authenticator, and a
// [Server] for muster's identity service.
//
//	POST /v1/resolve            Query           → 200 Answer, 404 Refusal ("no"), anything else: unknown
//	POST /v1/role-credentials   InstanceQuery   → 200 RoleCredentials, 404 Refusal
//	GET  /v1/changes            → 200, lines of Event without end: the first at once, then a heartbeat each second
//
// The second is for instance metadata and controllers, which have a socket of their own without the first: an attacker that takes over
// an authenticator does not get the credentials of every node. Changes are reported on both.
//
// Bodies are JSON. The answer to a query holds a signing key that is derived for one day, region and service (SigV4's kSigning):
// it can neither sign for another day or service nor reveal the secret. The socket is mode 0600 and each end checks the credentials of its
// peer (SO_PEERCRED), so nothing else on the host takes part.
//
// An answer may be used until Answer.ValidUntil, as long as the stream of changes is alive: a key, role or instance that
// ends is reported on it at once. A client that has heard nothing for [StaleAfter] asks for every request again.
package keyservice
