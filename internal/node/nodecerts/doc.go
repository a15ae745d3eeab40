// SPDX-License-Identifier: Apache-2.0

// Package nodecerts reads and replaces the certificates that a kubelet keeps on its node. They stay exactly what
// upstream's kubelet leaves there (client-go, util/certificate/certificate_store.go):
//
//	kubelet-client-2026-11-20-18-55-12.pem                                    0600: certificates, the node's first, then the key
//	kubelet-client-current.pem -> /var/lib/kubelet/pki/kubelet-client-2026-11-20-18-55-12.pem
//
// and the same for kubelet-server. The kubelet uses the certificates that it finds when it starts, and rotates them
// later as its own.
package nodecerts
