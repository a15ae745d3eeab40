// SPDX-License-Identifier: Apache-2.0

// Package imageimport makes the images of a directory (package loadedimages) images of a machine's containerd, without
// copying them.
//
// containerd keeps a blob as a file that is named by its digest, and a record of it in each namespace. For a blob that
// is in a directory of the machine anyway, the file is a symbolic link to it, and the record is made by containerd
// itself, which takes over a file that it finds under the expected digest and of the expected size. So 100 MB become an
// image in milliseconds on each machine, and are on the host's disk once. Layers are unpacked when a first container is
// made of them, as of every image.
//
//	link the blobs ──> lease ──> record each blob ──> make or replace the image ──> end the lease
//
// What happens if
//
//	it is cut short                 it is done again from the start; links without a record go with containerd's garbage
//	containerd removes a link       while nothing refers to it: the record fails, and it is tried again
//	containerd does not take over   as with content_sharing_policy = "isolated": the bytes are written to it
//	an image is in no index         and was made here: it is deleted. Containers that run go on; images by other means are never touched
//
// The directory is trusted; see package loadedimages. Images are marked as pinned, since the kubelet could not pull
// them again.
package imageimport
