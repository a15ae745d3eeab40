// SPDX-License-Identifier: Apache-2.0

// Package discovery finds a cluster's API server and certificate authority from an address and a bootstrap token, or
// from a discovery file.
//
// By token, as kubeadm does it: the API server shows the ConfigMap kube-public/cluster-info to everybody. It is fetched
// once from a server that nobody vouches for, and believed only as far as two proofs go. The signature made with the
// token proves that the cluster knows the token; the hash of the authority's public key, pinned by the person that made
// the token, proves that the cluster is not somebody else that knows the token, too. Then it is fetched again from a
// server whose certificate a pinned authority signed, and must be the same to the byte. Upstream stops one step short
// here: it accepts the second answer from a server that any authority of the first answer vouches for, and an attacker
// that knows the token may have put another authority beside the pinned one. For the same reason only pinned
// authorities are in the result: a kubelet takes them for those of its clients, too. While a cluster replaces its
// authority, the join command has the hashes of both.
//
// By file, from the disk or from an https URL that the system's authorities vouch for: the file is the proof.
package discovery
