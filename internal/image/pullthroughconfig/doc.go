// SPDX-License-Identifier: Apache-2.0

// Package pullthroughconfig is what people set about images of public registries, which the account's image registry
// pulls for machines: registries.yaml and the proxy settings of the host in the state directory.
//
//	registries:                                  # left out: docker.io, quay.io, registry.k8s.io, ghcr.io, gcr.io, public.ecr.aws
//	- name: docker.io
//	- name: registry.example.com:5000
//	  certificateAuthority: /etc/ssl/example.pem # besides the host's
//	dockerConfig: /home/you/.docker/config.json      # its passwords are used; left out: none
//	maxSize: 20Gi                                # of what is kept; this is the default
//
// Everything is checked strictly: a file that cannot be read gives no settings, and the caller then pulls nothing. An
// empty list of registries means that nothing is pulled.
package pullthroughconfig
