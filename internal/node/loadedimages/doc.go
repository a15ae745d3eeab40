// SPDX-License-Identifier: Apache-2.0

// Package loadedimages is what a machine is told of the container images that `muster image load` loaded for its
// cluster, and what it reports about them.
//
// The service shows a directory to the machine, read-only: an index and the blobs that the images in it are made of.
// The index is replaced in one step, and only after its blobs are there.
//
//	/opt/muster/images/index.json               Index
//	/opt/muster/images/blobs/sha256/HASH        manifests, configurations, layers
//	/var/lib/muster/loaded-images               Report, on the machine's own disk
//
// A machine trusts the directory: it is the account's, and its blobs were hashed when they were loaded. The service
// does not trust a report: root on the machine can write it, so it is read within bounds and only shown to people.
package loadedimages
