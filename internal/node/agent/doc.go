// SPDX-License-Identifier: Apache-2.0

// Package agent is the node agent, process number one of a machine: it asks the instance metadata service for the
// machine's identity and user data, renders the files of containerd, kubelet and kube-proxy, runs these three for as
// long as the machine lives, and reaps orphaned processes.
//
//	user data ──> scripts, once ──> NodeConfig ──> files ──> containerd ──┬─> the first images ───────┬─> kubelet ──(it has a
//	              (bootstrap.sh ──> drop-in ──^)                          └─> the API server answers ┘   certificate)──> kube-proxy
//
// A program that ends is started again. Containerd may end without its containers: their shims are processes of their
// own, which become children of the agent, and a new containerd finds them.
//
// [Init] does the same outside of process number one, for a person at the machine. Both go through one pipeline, which
// says its steps in their order: see pipeline.go.
package agent
