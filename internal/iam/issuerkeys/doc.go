// SPDX-License-Identifier: Apache-2.0

// Package issuerkeys fetches the keys of OpenID Connect issuers that are not clusters of the account, such as a GitLab
// or another EKS: the discovery document at ISSUER/.well-known/openid-configuration, and the key set that it names.
//
// It trusts the authorities of the system for TLS, and asks issuers only that IAM has as providers (the caller sees to
// that). It refuses redirects, answers other than 200, documents of more than 256 KiB, and addresses of this host:
// loopback, link-local (instance metadata among them), multicast and unspecified ones, and all that the kernel routes
// to the host itself, checked on the address that is dialled. Proxies are not used.
//
// What happens if
//
//	the issuer does not answer   an error within 5 s, and for 5 s more without asking; keys that are known are used for up to a day
//	a key id is not known        the keys are fetched again, at most once in 30 s for each issuer
//	many issuers are asked       8 at once, and the keys of 100 are kept; who waits for longer than 5 s gets old keys or an error
//	the kernel does not answer   an address without a route is not asked
//	a token spells the issuer's  as IAM takes it for the same provider, it is the same issuer: it causes no fetch of its own, and is refused
//	URL otherwise                unless the issuer spells it so
package issuerkeys
