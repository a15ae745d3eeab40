// SPDX-License-Identifier: Apache-2.0

// Package authority keeps a cluster's certificate authorities on disk and the certificates that they issue to its own
// components and administrators; the certificates of nodes are the certificate controller's (see package certificates).
//
// There are four authorities, so that a key of one opens no door of another: cluster (the API server, its clients and its
// kubelets), management (the same for the management plane), etcd, and front-proxy (who may speak for users). Service
// account tokens are signed with plain keys, one a plane.
//
// A certificate and its key are one file, replaced in one rename: a reader never sees a mismatched pair, and every
// component reads it again by itself, so that a renewal needs no restart.
package authority
