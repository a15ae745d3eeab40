// SPDX-License-Identifier: Apache-2.0

package clusterconfig

import (
	"cmp"
	"fmt"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/release"
)

// ReleaseOf is the release of Kubernetes that a new cluster asks for by its version.
func ReleaseOf(wanted string) (release.Release, error) { return releaseOf(wanted, release.All()) }

func releaseOf(wanted string, releases release.List) (release.Release, error) {
	found, err := releases.Of(wanted)
	if err != nil {
		return release.Release{}, fmt.Errorf("spec.version: %w", err)
	}
	return found, nil
}

// SaveNew writes the record of a cluster that there is none of yet. The record has the minor that is the default now, if
// the cluster asks for none: another default changes no cluster that is there.
func SaveNew(path string, wanted Config) (changed bool, err error) {
	of, err := ReleaseOf(wanted.Cluster.Spec.Version)
	if err != nil {
		return false, err
	}
	wanted.Cluster = wanted.Cluster.DeepCopy()
	wanted.Cluster.Spec.Version = of.Minor()
	return Save(path, wanted)
}

// ReleaseOfRecord is the release of Kubernetes that a cluster runs by its record: the first if the record names none.
func ReleaseOfRecord(recorded v1alpha1.ClusterSpec) (release.Release, error) {
	return ReleaseOf(cmp.Or(recorded.Version, release.All().First().Minor()))
}

// NextRelease is the release that a cluster is to run which has the first spec by its record, and is asked for the
// second. A cluster that is asked for no version keeps the one that it has.
func NextRelease(recorded, wanted v1alpha1.ClusterSpec) (release.Release, error) {
	return nextRelease(recorded.Version, wanted.Version, release.All())
}

func nextRelease(recorded, wanted string, releases release.List) (release.Release, error) {
	is, err := releaseOf(cmp.Or(recorded, releases.First().Minor()), releases)
	if err != nil || wanted == "" {
		return is, err
	}
	next, err := releaseOf(wanted, releases)
	if err != nil {
		return release.Release{}, err
	}
	if next.Minor() != is.Minor() {
		return release.Release{}, fmt.Errorf("spec.version: the cluster runs %s, and cannot be taken to %s yet: write %[1]s, or make a new cluster", is.Minor(), next.Minor())
	}
	return next, nil
}
