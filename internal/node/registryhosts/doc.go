// SPDX-License-Identifier: Apache-2.0

// Package registryhosts writes what containerd is told about registries on a machine (containerd, docs/hosts.md): the
// authority of the account's own registry, and that it is a mirror of public ones.
//
//	/etc/containerd/certs.d/ACCOUNT.dkr.ecr.REGION.amazonaws.com/hosts.toml   the account's own
//	/etc/containerd/certs.d/docker.io/hosts.toml                              the account's first, then docker.io
//
// User data comes first: a directory that it has made for a registry is left as it is, and one for all registries,
// _default, takes the place of all that Muster has written for public ones.
package registryhosts
