// SPDX-License-Identifier: Apache-2.0

// Package agent is the agent of a machine, and its process number one: it asks the instance metadata service who the machine is and
// what it was launched with, renders the files of containerd, kubelet and kube-proxy, runs these three for as long as the machine
// lives, and reaps whatever is left behind by others.
//
//	user data ──> scripts, once ──> NodeConfig ──> files ──> containerd ──┬─> images are imported ───┬─> kubelet ──(it has a
//	              (bootstrap.sh ──> drop-in ──^)                          └─> the API server answers ┘   certificate)──> kube-proxy
//
// A program that ends is started again. Containerd may end without its containers: their shims are processes of their own,
// which become children of the agent, and a new containerd finds them.
//
// What is outside of process number one, for a person at the machine, is [Init].
package agent
