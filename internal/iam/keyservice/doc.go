// SPDX-License-Identifier: Apache-2.0

// Package keyservice is the way from an account's clusters to the account: a [Client] for a cluster's authenticator,
// which asks who made a token, and a [Server] for muster's identity service, which knows the keys.
//
//	POST /v1/verify             Question        → 200 Answer, 404 Refusal ("no"), anything else: unknown
//	POST /v1/refused            Refused         → 200
//	POST /v1/role-credentials   InstanceQuery   → 200 RoleCredentials, 404 Refusal
//	GET  /v1/changes?sessions   → 200, lines of Event without end: the first at once, then a heartbeat each second
//
// Bodies are JSON over TLS, on a unix socket of mode 0600 where both are on one host. Each end has a certificate of the
// account's own authority, and the caller's says who asks (package caller): the authenticator of a cluster is answered
// about tokens for that cluster alone, whatever it says. No key leaves the account, so that what an authenticator holds
// is worth nothing at another cluster's door.
//
// The credentials of instances are for instance metadata and controllers, at a socket of their own that no cluster's
// certificate opens: an attacker that takes over an authenticator does not get the credentials of every node. Changes
// are reported on both. They name access keys, users, roles and instances by ids, which are no secrets.
//
// An answer may be used until Answer.ValidUntil, as long as the stream of changes is alive: a key, role or instance
// that ends is reported on it at once. A client that has heard nothing for [StaleAfter] asks for every request again.
package keyservice
