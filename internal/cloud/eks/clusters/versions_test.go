// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"testing"

	"muster.dev/muster/internal/platform/release/releasetest"
)

func TestVersionsAreReleases(t *testing.T) {
	t.Parallel()
	next := releasetest.Next()
	all := versions(releasetest.List(), next.Dates.EndOfStandardSupport)
	got := all[len(all)-1]
	if len(all) != len(releasetest.List()) || got.ClusterVersion != "1.99" || got.KubernetesPatchVersion != "1.99.1" || *got.DefaultVersion ||
		got.Status != "extended-support" || got.VersionStatus != "EXTENDED_SUPPORT" || got.ReleaseDate != next.Dates.Released ||
		got.EndOfStandardSupportDate != next.Dates.EndOfStandardSupport || got.EndOfExtendedSupportDate != next.Dates.EndOfExtendedSupport {
		t.Errorf("%+v", all)
	}
}
