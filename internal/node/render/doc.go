// SPDX-License-Identifier: Apache-2.0

// Package render turns the configuration of a machine ([nodeconfig.Spec]) and its facts ([Instance], [Facts], [Layout])
// into the files and arguments of containerd, kubelet and kube-proxy. Values in, values out: the caller writes the
// files.
//
// There are two layouts: a machine of the local provider, where the node agent keeps the programs running, and a host
// that systemd runs. Fields of the NodeConfig mean what they mean to nodes of EKS (nodeadm), the files are where theirs
// are, and the kubelet's configuration is theirs as far as it does not depend on AWS; where something differs a comment
// says why.
package render
