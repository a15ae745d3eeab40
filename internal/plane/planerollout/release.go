// SPDX-License-Identifier: Apache-2.0

package planerollout

import (
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/statedir"
)

// ReleaseToRun is the release that a cluster's plane is to run. The cluster's record may have been changed back while the
// plane was upgraded, or to a minor that the plane can no longer be taken back to: then the plane keeps what serves
// clients. A rollback whose first API server serves goes on, however late it is.
func ReleaseToRun(dir statedir.Cluster, recorded v1alpha1.ClusterSpec, now time.Time) (release.Release, error) {
	is, err := clusterconfig.ReleaseOfRecord(recorded)
	if err != nil {
		return is, err
	}
	record, err := read(dir.PlaneRecord())
	if err != nil {
		return is, err
	}
	runs, started := newest(record.Servers, release.All())
	if !started || runs.Distance(is) <= 0 {
		return is, nil
	}
	if runs.Distance(is) == 1 && record.checkBack(runs, is, now) == nil {
		return is, nil
	}
	return runs, nil
}

// checkBack refuses to take the plane back from what it runs, unless it is on the way already.
func (is Record) checkBack(runs, to release.Release, now time.Time) error {
	begun := slices.ContainsFunc(is.Servers, func(s Server) bool {
		return s.Phase == Serving && releaseOf(s.Spec, release.All()).Minor() == to.Minor()
	})
	if begun {
		return nil
	}
	return is.Move.checkBack(runs, to, now)
}

// Back is the minor that a cluster's plane can be taken back to now; empty if it cannot be.
func Back(dir statedir.Cluster, now time.Time) string {
	record, err := read(dir.PlaneRecord())
	if err != nil || record.Move == nil {
		return ""
	}
	runs, started := newest(record.Servers, release.All())
	to, err := release.All().OfMinor(record.Move.From)
	if err != nil || !started || runs.Distance(to) != 1 || record.Move.checkBack(runs, to, now) != nil {
		return ""
	}
	return to.Minor()
}

// Versions are the releases that a change of a cluster is about.
type Versions struct {
	// Recorded is what the cluster is to run by its record, Runs what its plane runs, and Next what it is asked to run.
	Recorded, Runs, Next release.Release
}

// Moves reports whether the change is to take the plane to another minor than it is on the way to.
func (v Versions) Moves() bool {
	return v.Next.Minor() != v.Recorded.Minor() && v.Next.Minor() != v.Runs.Minor()
}

// VersionsOf compares what is asked of a cluster with its record and its plane. The error refuses a release that does not
// follow the one that the plane runs, and one that the plane cannot be taken back to.
func VersionsOf(dir statedir.Cluster, recorded, wanted v1alpha1.ClusterSpec, now time.Time) (v Versions, err error) {
	if v.Recorded, err = clusterconfig.ReleaseOfRecord(recorded); err != nil {
		return v, err
	}
	record, err := read(dir.PlaneRecord())
	if err != nil {
		return v, err
	}
	runs, started := newest(record.Servers, release.All())
	if !started {
		runs = v.Recorded
	}
	v.Runs = runs
	if v.Next, err = clusterconfig.NextRelease(runs, recorded, wanted); err != nil {
		return v, err
	}
	if v.Next.Distance(runs) < 0 {
		err = record.checkBack(runs, v.Next, now)
	}
	return v, err
}
