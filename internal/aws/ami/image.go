// SPDX-License-Identifier: Apache-2.0

// Package ami has the images that machines are launched from: one for each minor version of Kubernetes and release of
// Muster's node files. They have names like the images that EKS publishes, so that tools which look for those find
// them. Nothing is stored of an image: a machine boots from the programs of the service, and the id says which ones.
package ami

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/version"
)

// The owner of the images, as EC2 shows it: that of EKS's own.
const (
	OwnerID    = "602401143452"
	OwnerAlias = "amazon"
)

// Properties of all images.
const (
	Architecture   = "x86_64"
	RootDeviceName = "/dev/xvda"
	// RootDiskGiB is what EKS gives a node that asks for nothing.
	RootDiskGiB = 20
)

// released is the day of each release of Muster's node files, which images are dated by. A test fails for a release
// that is not here.
var released = map[string]string{"v0.2.0": "20261122"}

// Image is one image.
type Image struct {
	ID, Name, Description string
	// Kubernetes is the minor version, as 1.36, and ReleaseVersion EKS's name of the release, as 1.36.3-20261122.
	Kubernetes, ReleaseVersion string
	Created                    time.Time
	// Deprecated is since when another image is in its place; zero for an image that is not deprecated.
	Deprecated time.Time
}

// All are the images, the newest of a minor version last.
func All() []Image { return images(release.All()) }

func images(list release.List) []Image {
	all := make([]Image, 0, len(list))
	for _, kubernetes := range list {
		all = append(all, of(kubernetes, version.Release))
	}
	return all
}

// Deprecated returns the images of earlier patches and node files, in whose place others are. Templates, machines and
// node classes may still name them.
func Deprecated() []Image { return deprecated(release.All()) }

func deprecated(list release.List) (all []Image) {
	for _, r := range list {
		for _, id := range ids(r) {
			if image, _ := find(id, list); !image.Deprecated.IsZero() {
				all = append(all, image)
			}
		}
	}
	return all
}

// of is the image of a release of Kubernetes and one of Muster's node files.
func of(kubernetes release.Release, files string) Image {
	patch, minor, day := kubernetes.Patch(), kubernetes.Minor(), released[files]
	created, _ := time.Parse("20060102", day) // a test looks
	sum := sha256.Sum256([]byte("muster image " + kubernetes.Version + " " + files + " " + Architecture))
	return Image{
		ID:          "ami-" + hex.EncodeToString(sum[:])[:17],
		Name:        "amazon-eks-node-al2023-" + Architecture + "-standard-" + minor + "-v" + day,
		Description: "Muster " + files + " machine with Kubernetes " + patch + " (k8s: " + patch + ", containerd: " + strings.TrimPrefix(version.Containerd, "v") + ")",
		Kubernetes:  minor, ReleaseVersion: patch + "-" + day, Created: created,
	}
}

// Find finds an image by its id. An image of an earlier patch has its own id, and is otherwise that of the patch which its
// machines run now.
func Find(id string) (Image, bool) { return find(id, release.All()) }

func find(id string, list release.List) (Image, bool) {
	i := slices.IndexFunc(list, func(r release.Release) bool { return launches(id, r) })
	if i < 0 {
		return Image{}, false
	}
	image := of(list[i], version.Release)
	switch {
	case !slices.Contains(ids(list[i]), id): // a copy, which is deprecated when its owner says so
		image.ID = id
	case image.ID != id:
		image.ID, image.Deprecated = id, image.Created
	}
	return image, true
}

// launches reports whether an image's machines run a release.
func launches(id string, r release.Release) bool {
	return slices.ContainsFunc(ids(r), func(of string) bool { return id == of || copies(id, of) })
}

// copied is how much of an image's id the ids of its copies begin with: the prefix and 9 of 17 digits.
const copied = len("ami-") + 9

// Copy makes the id of a copy of an image, or of a copy, of a random id. Nothing is stored of an image, and nothing need be of
// a copy for its machines to boot: they run the release of the image whose id the copy's begins like.
func Copy(source, random string) string { return source[:copied] + random[copied:] }

// IsCopy reports whether an id is that of a copy. Whether there is such a copy is not known here.
func IsCopy(id string) bool {
	return slices.ContainsFunc(release.All(), func(r release.Release) bool { return launches(id, r) && !slices.Contains(ids(r), id) })
}

func copies(id, of string) bool { return len(id) == len(of) && id != of && id[:copied] == of[:copied] }

// ids are the ids of all images whose machines run a release, the earlier patches first.
func ids(r release.Release) (all []string) {
	for _, version := range append(slices.Clone(r.Earlier), r.Version) {
		for _, files := range slices.Sorted(maps.Keys(released)) {
			all = append(all, of(release.Release{Version: version}, files).ID)
		}
	}
	return all
}

// Recommended is the newest image of a minor version of Kubernetes, as 1.36.
func Recommended(kubernetes string) (Image, bool) {
	var found Image
	for _, i := range All() {
		if i.Kubernetes == kubernetes {
			found = i
		}
	}
	return found, found.ID != ""
}

// OfMachine is the id of the image that a machine was launched from. A machine that names none has the first release.
func OfMachine(m *v1alpha1.Machine) string {
	return cmp.Or(m.Spec.ImageID, OfRelease(release.All().First()))
}

// OfRelease returns the id of the image that machines of a release are launched from.
func OfRelease(r release.Release) string { return of(r, version.Release).ID }

// Release returns the release of Kubernetes that a machine runs which was launched from an image, by its id: the first
// release if a machine names no image, or one of a later version of Muster.
func Release(id string) release.Release { return releaseOf(id, release.All()) }

func releaseOf(id string, list release.List) release.Release {
	i := slices.IndexFunc(list, func(r release.Release) bool { return launches(id, r) })
	if i < 0 {
		return list.First()
	}
	return list[i]
}
