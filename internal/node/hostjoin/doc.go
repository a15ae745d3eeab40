// SPDX-License-Identifier: Apache-2.0

// Package hostjoin makes a host that systemd runs a node of a cluster, and a plain host again.
//
//	preflight ─> discovery ─> token ─> install ─> files ─> containerd ─> images ─> kubelet ─> certificate ─> node ─> kube-proxy ─> Ready
//
// It is crash-only. A join enters everything that it is about to make into a ledger on the disk, so a join that was
// killed can be run again from any point, and a leave undoes exactly what the ledger lists. Nothing that was on the
// host before is in the ledger.
package hostjoin
