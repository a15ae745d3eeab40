// SPDX-License-Identifier: Apache-2.0

// Package tokensigner signs a cluster's service account tokens for its API server: a server of Kubernetes'
// ExternalJWTSigner (KEP-740) on a unix socket, which kube-apiserver is told by --service-account-signing-endpoint. The
// API server has no key of its own then, and asks which public keys there are, so keys are replaced without a restart
// of anything (package tokenkeys).
//
// The keys are in a directory that is the signer's alone. The account asks for public keys, and has another one added,
// by TLS at a port of its own: one client is answered, by the name in its certificate. No private key is in an answer.
//
// It signs claims of the cluster's issuer that end in time, and nothing else. The key of tokens in Secrets, which
// kube-controller-manager signs and which never end, is trusted by the API server and kept out of the issuer's
// documents.
//
// What happens if
//
//	it dies                          it is started again; the API server waits for it as long as the request may take
//	the account is away              it starts, signs and rotates when it is time, all the same
//	the file of keys is replaced     the next answer follows it
//	the file is damaged or lost      it signs nothing; the API server goes on with the public keys that it knows
//	the file is another user's       it ends: it is given the file when it is started again
//	an order is given twice          it is carried out once
//
// It trusts whoever reaches the socket, which is the owner of the state directory alone, and whoever has the account's
// certificate.
package tokensigner
