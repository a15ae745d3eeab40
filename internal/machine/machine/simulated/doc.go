// SPDX-License-Identifier: Apache-2.0

// Package simulated provides simulated machines, by the hundred: the [Provider] keeps records, and the [Simulator], a
// process of its own, joins a node for each record by the same protocol as a kubelet. It asks for certificates with the
// machine's bootstrap token, registers the Node, keeps its Lease, and renews both certificates; it runs no pods. It
// needs no root.
//
//	record appears -> key, client CSR -> Node, Ready -> Lease -> serving CSR -> renew Lease, status, certificates ...
//	record goes, or is marked as stopped -> the node falls silent, as a machine that is switched off does
//	the mark goes  -> the node goes on with the certificates that it has
package simulated
