// SPDX-License-Identifier: Apache-2.0

// Package tokensigner signs a cluster's service account tokens for its API server: a server of Kubernetes' ExternalJWTSigner (KEP-740) on a
// unix socket, which kube-apiserver is told by --service-account-signing-endpoint. The API server has no key of its own then, and asks
// which public keys there are, so keys are replaced without a restart of anything (package tokenkeys).
//
// It signs claims of the cluster's issuer that end in time, and nothing else. The key of tokens in Secrets, which kube-controller-manager signs
// and which never end, is trusted by the API server and kept out of the issuer's documents.
//
// What happens if
//
//	it dies                         it is started again; the API server waits for it as long as the request may take
//	the file of keys is replaced    the next answer follows it
//	the file is damaged or lost     it signs nothing; the API server goes on with the public keys that it knows
//
// It trusts whoever reaches the socket, which is the owner of the state directory alone.
package tokensigner
