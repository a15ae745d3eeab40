// SPDX-License-Identifier: Apache-2.0

// Package explainapi is the API explain.muster.dev of one cluster, which the cluster's API server aggregates: why its
// Nodes, its certificate signing requests and the cluster itself are as they are, as "muster explain" says it. It is
// read-only, and has no state.
//
//	kubectl ──► API server ──► door of the VPC ──► unix socket ──► Server
//	            authenticates   leads there alone                  certificate of the API server, SubjectAccessReview, record, explanation
//
// Who asks is the API server's word, in the headers of its aggregation layer. They are believed of nobody but the client
// whose certificate is of the cluster's authority of proxies and has the API server's name: other programs have
// certificates of that authority, too. The same API server decides what the user may do, by its authorizer, for each
// request anew. An explanation is read with the rights of the service, and is of this cluster's objects alone.
//
// What happens if
//
//	a client has no certificate, or another one   the TLS handshake or the request ends, whatever its headers say
//	the API server cannot say whether a user may  503, and nothing is read
//	the record of reads cannot be written         503, and nothing is read
//	the management plane does not answer          503
//	a part of the cluster cannot be read          the report says what could not be seen
//	many ask at once                              one explanation of a cluster is made at a time; who waits too long gets 429
package explainapi
