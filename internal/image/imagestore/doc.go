// SPDX-License-Identifier: Apache-2.0

// Package imagestore keeps the container images that `muster image load` loaded: blobs by their digests, which image
// each cluster has by a name, and a directory for each cluster that its machines see (package loadedimages).
//
//	STATE/images/index.json                       which image a name is, and in which clusters
//	STATE/images/blobs/sha256/HASH                every blob once
//	STATE/images/ingest-N/                        what is being loaded, or was when it was cut short
//	STATE/clusters/NAMESPACE/images/index.json    the images of one cluster, as package loadedimages has it
//	STATE/clusters/NAMESPACE/images/blobs/        hard links to their blobs
//
// A cluster's machines see its own directory alone, read-only. All files are private to the owner of the state
// directory.
//
// What happens if
//
//	it is cut short            blobs come before the index that names them, so an index never promises what is not there; what is left over goes
//	                           with the next change
//	two load at once           the changes wait for each other (a lock in the directory); what was hashed is hashed at once
//	the disk is full           the load fails, and everything is as before
//	a cluster comes later      Show makes its directory when its first machine boots
//	an image is replaced       machines keep containers that run; the blobs of the old image go from the disk an hour later, when a later change or
//	                           boot looks: a machine that is about to unpack them does so until then
package imagestore
