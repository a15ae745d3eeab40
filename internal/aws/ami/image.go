// SPDX-License-Identifier: Apache-2.0

// Package ami has the images that machines are launched from: one for each minor version of Kubernetes and release of Muster's node files. They have
// names like the images that EKS publishes, so that tools which look for those find them. Nothing is stored of an image: a machine boots from the
// programs of the service, and the id says which ones.
package ami

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/version"
)

// The owner of the images, as EC2 shows it: that of EKS's own.
const (
	OwnerID    = "602401143452"
	OwnerAlias = "amazon"
)

// What all images are of.
const (
	Architecture   = "x86_64"
	RootDeviceName = "/dev/xvda"
	// RootDiskGiB is what EKS gives a node that asks for nothing. A machine's disk is a directory of the host, of no fixed size.
	RootDiskGiB = 20
)

// released is the day of each release of Muster's node files, which images are dated by. A test fails for a release that is not here.
var released = map[string]string{"v0.2.0": "20261122"}

// Image is one image.
type Image struct {
	ID, Name, Description string
	// Kubernetes is the minor version, as 1.36, and ReleaseVersion EKS's name of the release, as 1.36.3-20261122.
	Kubernetes, ReleaseVersion string
	Created                    time.Time
}

// All are the images, the newest of a minor version last.
func All() []Image { return []Image{of(version.Kubernetes, version.Release)} }

func of(kubernetes, release string) Image {
	patch := strings.TrimPrefix(kubernetes, "v")
	minor := patch[:strings.LastIndex(patch, ".")]
	day := released[release]
	created, _ := time.Parse("20060102", day) // a test looks
	sum := sha256.Sum256([]byte("muster image " + kubernetes + " " + release + " " + Architecture))
	return Image{
		ID:          "ami-" + hex.EncodeToString(sum[:])[:17],
		Name:        "amazon-eks-node-al2023-" + Architecture + "-standard-" + minor + "-v" + day,
		Description: "Muster " + release + " machine with Kubernetes " + patch + " (k8s: " + patch + ", containerd: " + strings.TrimPrefix(version.Containerd, "v") + ")",
		Kubernetes:  minor, ReleaseVersion: patch + "-" + day, Created: created,
	}
}

// Find finds an image by its id.
func Find(id string) (Image, bool) {
	for _, i := range All() {
		if i.ID == id {
			return i, true
		}
	}
	return Image{}, false
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

// OfMachine is the id of the image that a machine was launched from: those of node groups are of the newest one.
func OfMachine(m *v1alpha1.Machine) string {
	all := All()
	return cmp.Or(m.Spec.ImageID, all[len(all)-1].ID)
}
