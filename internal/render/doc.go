// SPDX-License-Identifier: Apache-2.0

// Package render turns what a machine was told (its [NodeConfig]) and what it is ([Instance], [Facts]) into the files and
// arguments of containerd, kubelet and kube-proxy. Values in, values out: the node agent writes the files.
//
// The kubelet's configuration is the one that nodes of EKS have (nodeadm, internal/kubelet/config.go), as far as it does not
// depend on AWS; where it differs a comment says why.
package render
