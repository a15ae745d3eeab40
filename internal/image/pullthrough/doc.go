// SPDX-License-Identifier: Apache-2.0

// Package pullthrough answers machines that pull images of public registries from the account's image registry, as containerd's mirrors do (the parameter ns names the
// registry), and keeps what it pulled.
//
//	machine ──ns=docker.io──> kept? ──yes──> package pulledstore
//	                           └──no──> may its VPC? ──> package upstream ──> kept, and passed on while it comes
//
// What comes is what the VPC's way out lets through: without one nothing is pulled, and addresses are decided about as for the machine's own connections. What was
// pulled before is served whatever the VPC says: nothing leaves for it. A tag is asked about at its registry each time; when the registry cannot be had, what the tag led to before
// is served. Requests of one VPC for the same blob are one request to its registry. With the manifest of an image all of its blobs are pulled, so that it is whole
// without its registry.
//
// It trusts the relay of a VPC about which VPC a client is in, and nobody else: clients have no password, as with the registries themselves. Content must have
// its digest, and manifests and blobs are bounded.
package pullthrough
