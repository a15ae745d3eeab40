// SPDX-License-Identifier: Apache-2.0

// Package connectproxy is an HTTP CONNECT proxy on a unix socket, as kube-apiserver speaks to one that its
// EgressSelectorConfiguration names (proxyProtocol HTTPConnect; k8s.io/apiserver/pkg/server/egressselector), and a
// client of one. GET /readyz on the same socket answers ok.
//
// An API server shows of an answer that is not 200 the status line alone, so the reason of a refusal is in that line.
package connectproxy
