// SPDX-License-Identifier: Apache-2.0

// Package registrylogin is how the account's image registry asks the account whose a password is and what its owner may
// do: a [Client] for the registry, and a [Server] in front of the identity service.
//
//	POST /v1/decide   Question → 200 Answer, 401 {"reason": …}, anything else: unknown
//
// Bodies are JSON over a unix socket of mode 0600 in a directory of the owner's; each end looks at the user of the
// other, and talks to root and its own user alone. A password is sealed by the identity service and has no secret in it
// that signs requests.
//
// While the account is away nothing is decided: the registry answers 503, and its clients try again.
package registrylogin
