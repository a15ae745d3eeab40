// SPDX-License-Identifier: Apache-2.0

package clusterconfig

import (
	"cmp"
	"fmt"
	"slices"

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

// NextRelease is the release that a cluster is to run by its next record, whose control plane runs one. A cluster that is
// asked for no version keeps that of its record. The release is one minor older or newer at most; whether the plane may
// be taken back depends on how it came to what it runs, which the caller knows.
func NextRelease(runs release.Release, recorded, wanted v1alpha1.ClusterSpec) (release.Release, error) {
	return nextRelease(runs, recorded.Version, wanted.Version, release.All())
}

func nextRelease(runs release.Release, recorded, wanted string, releases release.List) (release.Release, error) {
	next, err := releaseOf(cmp.Or(wanted, recorded, releases.First().Minor()), releases)
	if err != nil {
		return release.Release{}, err
	}
	switch newer := next.Distance(runs); {
	case newer < -1:
		before := releases[slices.IndexFunc(releases, func(r release.Release) bool { return r.Distance(runs) >= 0 })-1]
		return release.Release{}, fmt.Errorf("spec.version: the control plane runs %s, and is taken back by one minor at most: to %s, not to %s", runs.Minor(), before.Minor(), next.Minor())
	case newer > 1:
		after := releases[slices.IndexFunc(releases, func(r release.Release) bool { return r.Distance(runs) > 0 })]
		return release.Release{}, fmt.Errorf("spec.version: the control plane runs %s, and is upgraded by one minor at a time: %s comes next, and %s after that", runs.Minor(), after.Minor(), next.Minor())
	}
	return next, nil
}
