// SPDX-License-Identifier: Apache-2.0

// Package registrystore keeps the repositories of the account's image registry on disk, for two processes: the
// registry, which images are pushed to and pulled from, and the service, which answers ECR's API.
//
//	DIR/blobs/sha256/HASH                         every blob once: layers, configurations, manifests
//	DIR/repositories/NAME/repository.json         a repository; a slash in its name is %2F
//	DIR/repositories/NAME/layers/HASH             empty: the repository has the blob
//	DIR/repositories/NAME/manifests/HASH.json     a manifest and what it refers to
//	DIR/repositories/NAME/tags/TAG                the digest that a tag leads to
//	DIR/uploads/ID/                               blobs that are being pushed
//
// It decides nothing about rights. A repository gives out only blobs that were pushed to it, or mounted from another:
// who knows a digest does not thereby have the blob. A blob is taken if its content has the digest that was announced,
// a manifest if everything that it refers to is in its repository.
//
// What happens if
//
//	a process is killed      a blob comes before its link, a manifest's blobs before it, and a manifest before its tag: nothing leads nowhere
//	two processes write      changes wait for each other (a lock in the directory); the bytes of blobs do not
//	a removal is killed      Collect, which is called at the start, too, removes what is left of the repository
//	nothing refers to it     Collect removes a blob that no manifest has a day after it was pushed, and an upload that rests for a day
//	two requests write one upload    the second is refused: nothing is written to a blob that an upload has become
//	the disk is nearly full  the push fails while 1 GiB is left, and everything is as before
package registrystore
