// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"testing"

	"muster.dev/muster/internal/platform/release/releasetest"
)

func TestVersionsAreReleases(t *testing.T) {
	t.Parallel()
	all, next := versions(releasetest.List()), releasetest.Next()
	got := all[len(all)-1]
	if len(all) != 2 || got.ClusterVersion != "1.37" || got.KubernetesPatchVersion != "1.37.1" || *got.DefaultVersion || !*all[0].DefaultVersion || got.ReleaseDate != next.Dates.Released ||
		got.EndOfStandardSupportDate != next.Dates.EndOfStandardSupport || got.EndOfExtendedSupportDate != next.Dates.EndOfExtendedSupport {
		t.Errorf("%+v", all)
	}
}
