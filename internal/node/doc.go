// SPDX-License-Identifier: Apache-2.0

// Package node is the agent of a machine, and its process number one: it reads what the machine was told, renders the files
// of containerd, kubelet and kube-proxy, runs these three for as long as the machine lives, and reaps whatever is left
// behind by others.
//
//	user data ──> files ──> containerd ──┬─> images are imported ───┬─> kubelet ──(it has a certificate)──> kube-proxy
//	                                     └─> the API server answers ┘
//
// A program that ends is started again. Containerd may end without its containers: their shims are processes of their own,
// which become children of the agent, and a new containerd finds them.
package node
