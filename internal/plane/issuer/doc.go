// SPDX-License-Identifier: Apache-2.0

// Package issuer is the OpenID Connect issuer of a cluster's service account tokens: its URL, which is fixed forever
// when the cluster is made, and the two documents by which anybody verifies a token without asking the API server. The
// paths are EKS's:
//
//	https://HOST/id/ID/.well-known/openid-configuration   where the keys are
//	https://HOST/id/ID/keys                               the public keys, as a JSON Web Key Set
//
// HOST is the account's, one for all of its clusters (issuers.json): this host's own name, if that leads to a loopback
// address that can be listened on, else the account's address, or the name that somebody chose. ID is 32 random
// hexadecimal digits (issuer.json). Both files are made once and never written again: with another URL, every trust
// policy and every token that names the old one would be worthless.
//
// It trusts the two files, and the PEM files of keys that the API server reads itself. It publishes public keys only,
// of a cluster that was asked for by its ID; it never lists clusters. It refuses records that are damaged or of a later
// version, keys that the API server would not sign with, every method but GET and HEAD, and every path that is not
// exactly one of the two.
//
// What happens if
//
//	a record is missing in a directory in use   it is not made anew: an error
//	the port is taken                           an error that names it; the caller tries again
//	the host's name leads elsewhere later       pods find issuers as before, programs of the host do not: the status says so
//	a certificate is renewed                    it is read again with the next connection
package issuer
