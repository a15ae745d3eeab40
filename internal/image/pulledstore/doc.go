// SPDX-License-Identifier: Apache-2.0

// Package pulledstore keeps what was pulled from public registries on disk, so that it is there without them.
//
//	DIR/blobs/HASH               manifests, configurations and layers, each once; its time is when it was last used
//	DIR/types/HASH               the media type of a manifest
//	DIR/tags/REGISTRY%2FNAME/TAG  the digest that a tag led to when its registry was last asked
//	DIR/partial/                 what is being pulled
//
// It is a cache: everything in it can be pulled again. It takes only content that has the digest that it is called by,
// and believes nothing else about it. Content is the same whichever registry it came from, so it is found by its digest
// alone.
//
// What happens if
//
//	a process is killed      what was being pulled is removed at the next start
//	it grows above a bound   what was used longest ago goes (Collect), until a tenth of the bound is free; readers that have it open read on
//	there are 10,000 tags    those used longest ago go, until a tenth of the bound is free
//	the disk is full         nothing is kept, and everything is as before
package pulledstore
