// SPDX-License-Identifier: Apache-2.0

// Package authority keeps a cluster's certificate authorities on disk and the certificates that they issue to its own
// components and administrators; the certificates of nodes are the certificate controller's (see package certificates).
//
// There are five authorities, so that a key of one opens no door of another: cluster (the API server and its clients), kubelet
// (kubelets' client and serving certificates), management (the management plane and its clients), etcd, and front-proxy (who
// may speak for users). Service account tokens are signed with plain keys, one a plane.
//
// The authority of kubelets is one after another, see package rotation. Its directory is the only place that knows which:
//
//	kubelet/record.json                 who signs, who is trusted, and how far a rotation has come
//	kubelet/kubelet-<n>.pem             an authority, certificate and key
//	kubelet/signing.pem                 the one that signs: a copy, for the certificate controller
//	kubelet/{client,serving}-ca.pem     bundles of those who are trusted, for the API server
//
// A certificate and its key are one file, replaced in one rename: a reader never sees a mismatched pair, and every
// component reads it again by itself, so that a renewal needs no restart.
package authority
