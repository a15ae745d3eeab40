// SPDX-License-Identifier: Apache-2.0

// Package hostjoin makes a host that systemd runs a node of a cluster, and a plain host again.
//
//	preflight ─> discovery ─> token ─> install ─> files ─> containerd ─> images ─> kubelet ─> certificate ─> node ─> kube-proxy ─> Ready
//
// It is crash-only. Whatever a join is about to make is in a ledger on the disk before it is made, so a join that was killed can be
// run again from any point, and a leave undoes exactly what the ledger lists: what was on the host before is in no ledger.
package hostjoin
