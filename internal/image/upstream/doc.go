// SPDX-License-Identifier: Apache-2.0

// Package upstream pulls manifests and blobs of images from public registries, by the distribution protocol of OCI over
// HTTPS, with the bearer tokens that registries hand out (distribution's specification, "Token Authentication").
//
//	registry ──401, a challenge──> token of its realm, for pulling from one repository ──> manifest or blob, maybe by a redirect
//
// It trusts neither a registry nor where that leads: an address is asked about at the moment it is dialled, of a realm
// and of a redirect as well, so that no name leads into the host or a private network. Where a proxy of the host makes
// the connection, the proxy finds the address: then names that are not of the public name space are refused. Only HTTPS
// is spoken, a redirect too; manifests, tokens and their answers are bounded. The caller checks digests.
//
// A password and a token belong to the host that asked for them: to the registry, or to a host that it redirects to, if
// credentials are given for that one. A password goes to its registry and to the realm that this names, and to no other
// host. Nothing is kept but tokens, in memory, until they expire.
package upstream
