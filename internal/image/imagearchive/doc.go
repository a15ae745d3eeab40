// SPDX-License-Identifier: Apache-2.0

// Package imagearchive reads container images from what people have them in: the archive of `docker save` or podman, an
// archive of an OCI image layout, or a directory that holds one. Archives may be compressed with gzip and come from a
// pipe.
//
// It trusts nothing of it. Blobs are hashed as they come, whatever their names say; a manifest is taken only if its
// configuration and all of its layers are there, with the digests and sizes that it says, and for this host's platform.
// Nothing is unpacked, and no path of an archive is used on this host. Layers of docker's archives must be those of the
// configuration; compressed ones are checked by containerd when it unpacks them.
package imagearchive
