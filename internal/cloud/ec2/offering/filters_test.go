// SPDX-License-Identifier: Apache-2.0

package offering

import (
	"testing"

	"muster.dev/muster/internal/cloud/ec2/ec2resourcetest"
)

// Every filter is asked about all zones, and about the region of the account and another.
func TestFilters(t *testing.T) {
	a := New(ec2resourcetest.New(t), nil)
	zones, err := a.describeAvailabilityZones().Do(t.Context(), nil, &describeZonesInput{})
	if err != nil {
		t.Fatal(err)
	}
	ec2resourcetest.Golden(t, "testdata/zonefilters.txt", zoneNoun(), zones.AvailabilityZones)
	regions, err := a.describeRegions().Do(t.Context(), nil, &describeRegionsInput{AllRegions: true, RegionNames: []string{"eu-west-1", "us-east-1"}})
	if err != nil {
		t.Fatal(err)
	}
	ec2resourcetest.Golden(t, "testdata/regionfilters.txt", regionNoun(), regions.Regions)
}
