// SPDX-License-Identifier: Apache-2.0

package planerollout

import (
	"path/filepath"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/statedir"
)

// ReleaseToRun is the release that a cluster's plane is to run. The cluster's record may have been changed back while the
// plane was upgraded: that takes back nothing that serves clients.
func ReleaseToRun(dir statedir.Cluster, recorded v1alpha1.ClusterSpec) (release.Release, error) {
	is, err := clusterconfig.ReleaseOfRecord(recorded)
	if err != nil {
		return is, err
	}
	runs, started, err := serves(dir.PlaneRecord(), release.All())
	if started && runs.Distance(is) > 0 {
		is = runs
	}
	return is, err
}

// Releases are the release that a cluster is to run by its record, and the one that it is to run by what is asked of it.
// The error refuses a release that does not follow the one that its plane runs.
func Releases(dir statedir.Cluster, recorded, wanted v1alpha1.ClusterSpec) (is, next release.Release, err error) {
	if is, err = clusterconfig.ReleaseOfRecord(recorded); err != nil {
		return is, next, err
	}
	runs, started, err := serves(dir.PlaneRecord(), release.All())
	if err != nil {
		return is, next, err
	}
	if !started {
		runs = is
	}
	next, err = clusterconfig.NextRelease(runs, recorded, wanted)
	return is, next, err
}

// serves is the newest release of Kubernetes that API servers of a plane serve clients with, by the plane's record; ok is
// false for a plane that was not started yet. A newcomer does not count: until it serves, it has written nothing.
func serves(path string, releases release.List) (newest release.Release, ok bool, err error) {
	record, err := read(path)
	if err != nil {
		return release.Release{}, false, err
	}
	for _, s := range without(record.Servers, Newcomer) {
		if of := releaseOf(s.Spec, releases); !ok || of.Distance(newest) > 0 {
			newest, ok = of, true
		}
	}
	return newest, ok, nil
}

// releaseOf is the release of an API server, by the folder of its program. Before there were several, programs had none.
func releaseOf(spec component.Spec, releases release.List) release.Release {
	folder := filepath.Base(filepath.Dir(spec.Path))
	i := slices.IndexFunc(releases, func(r release.Release) bool { return r.Folder == folder })
	if i < 0 {
		return releases.First()
	}
	return releases[i]
}
