// SPDX-License-Identifier: Apache-2.0

// Package simulated provides simulated machines, by the hundred: the [Provider] keeps records, and the [Simulator], a
// process of its own, joins a node for each record by the same protocol as a kubelet. It asks for certificates with the
// machine's bootstrap token, registers the Node, keeps its Lease, and renews both certificates. It needs no root.
//
// A machine that simulates pods reports those that are bound to its node as a kubelet does (package podstatus), and no
// process is behind them. Other machines have a taint that keeps pods away. All read pods by one watch, with a
// certificate of the simulator's that may read pods and nothing else; each writes with its node's own certificate, so
// that the API server refuses a write about another node's pod.
//
//	record appears -> key, client CSR -> Node, Ready -> Lease -> serving CSR -> renew Lease, status, certificates ...
//	pod is bound to the node -> its status -> its status once it has ended, and its removal
//	record goes, or is marked as stopped -> the node falls silent, as a machine that is switched off does
//	the mark goes  -> the node goes on with the certificates that it has
package simulated
