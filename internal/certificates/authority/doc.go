// SPDX-License-Identifier: Apache-2.0

// Package authority keeps certificate authorities on disk, those of a cluster or those of the account, and the
// certificates that they issue to components and administrators; the certificates of nodes are the certificate
// controller's (see package csrcontroller).
//
// There are several authorities, so that a key of one is of no use against another. A cluster has four: cluster (the
// API server and its clients), kubelet (kubelets' client and serving certificates), etcd, and front-proxy (proxies that
// may impersonate users). The account has three: account (STS and IAM), management (the management plane and its
// clients) and management-etcd. Service account tokens are signed with plain keys, one a plane.
//
// The authority of kubelets is replaced from time to time, see package rotation. Its directory is the only record of
// the current one:
//
//	kubelet/record.json                 the signing authority, the trusted ones, and the phase of a rotation
//	kubelet/kubelet-<n>.pem             an authority, certificate and key
//	kubelet/signing.pem                 the one that signs: a copy, for the certificate controller
//	kubelet/{client,serving}-ca.pem     bundles of the trusted authorities, for the API server
//
// A certificate and its key are one file, replaced in one rename: a reader never sees a mismatched pair, and every
// component reloads it by itself, so a renewal needs no restart.
package authority
