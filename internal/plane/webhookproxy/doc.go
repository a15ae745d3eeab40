// SPDX-License-Identifier: Apache-2.0

// Package webhookproxy is the HTTP CONNECT proxy by which a cluster's API server dials whatever upstream counts to the
// network "controlplane": the webhooks of its flags (tokens, authorization), webhooks and conversions that its users
// name by URL, and nothing else that Muster sets up (ControlPlane in k8s.io/apiserver/pkg/server/egressselector and its
// callers). Upstream tells none of these apart, so the target does:
//
//	a port that the API server's own flags and files name   the host's loopback, as the one place that is reached there
//	anything else                                           the VPC, by the process of that: from the cluster's address, under its security groups
//	anything else, in a cluster without a VPC               refused
//
// Each of the account's own ports refuses clients without a certificate, and an API server shows one that its flags
// name. So a user who names such a port by URL gets no further than the TLS handshake.
//
// It is a process of its own, one for each cluster, with no keys, no files and no settings that change, since each
// login of a person and of a node takes this way: what keeps the VPC's process busy or has it restart keeps nobody out.
//
// What happens if
//
//	it dies                    connections end, and the supervisor starts it again; API servers connect again with the next request
//	the VPC's process is away  the account's own ports are reached as ever; anything else waits for it for 5 seconds
//
// It trusts whoever reaches the socket, which is the owner of the state directory alone.
package webhookproxy
