// SPDX-License-Identifier: Apache-2.0

// Package pullthrough answers machines that pull images of public registries from the account's image registry, as
// containerd's mirrors do (the parameter ns names the registry), and keeps what it pulled.
//
//	machine ──ns=docker.io──> kept? ──yes──> package pulledstore
//	                           └──no──> may its VPC? ──> package upstream ──> kept, and passed on while it comes
//
// Pulls go only where the VPC's way out lets its machines connect; a VPC without a way out pulls nothing. Images that
// were pulled before are served to every VPC, since nothing leaves for them. The registry is asked about a tag each
// time; while the registry cannot be reached, the last image of the tag is served. Requests of one VPC for the same
// blob are one request to its registry. With the manifest of an image all of its blobs are pulled, so that it is whole
// without its registry.
//
// It trusts the relay of a VPC about which VPC a client is in, and nobody else: clients have no password, as with the
// registries themselves. Content must have its digest, and manifests and blobs are bounded.
package pullthrough
