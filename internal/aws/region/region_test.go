// SPDX-License-Identifier: Apache-2.0

package region_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/region"
)

func TestFind(t *testing.T) {
	for _, test := range []struct {
		name, domain string
		zones        [3]region.Zone
	}{
		{"us-east-1", "ec2.internal", [3]region.Zone{{"us-east-1a", "use1-az1"}, {"us-east-1b", "use1-az2"}, {"us-east-1c", "use1-az4"}}},
		{"eu-west-1", "eu-west-1.compute.internal", [3]region.Zone{{"eu-west-1a", "euw1-az1"}, {"eu-west-1b", "euw1-az2"}, {"eu-west-1c", "euw1-az3"}}},
		{"us-east-2", "us-east-2.compute.internal", [3]region.Zone{{"us-east-2a", "use2-az1"}, {"us-east-2b", "use2-az2"}, {"us-east-2c", "use2-az3"}}},
		{"ap-northeast-1", "ap-northeast-1.compute.internal", [3]region.Zone{{"ap-northeast-1a", "apne1-az1"}, {"ap-northeast-1b", "apne1-az2"}, {"ap-northeast-1c", "apne1-az4"}}},
	} {
		got, err := region.Find(test.name)
		if err != nil || got.Name != test.name || got.Zones != test.zones || got.Domain() != test.domain {
			t.Errorf("Find(%s) = %+v, %v, with domain %s", test.name, got, err, got.Domain())
		}
	}
}

func TestZone(t *testing.T) {
	r, err := region.Find("us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	for _, zone := range r.Zones {
		if got, err := r.Zone(zone.Name); err != nil || got != zone {
			t.Errorf("Zone(%s) = %+v, %v", zone.Name, got, err)
		}
	}
	for _, name := range []string{"us-east-1d", "eu-west-1a", "use1-az1", ""} {
		if got, err := r.Zone(name); err == nil || !strings.Contains(err.Error(), "is not a zone of us-east-1, which are us-east-1a, us-east-1b and us-east-1c") {
			t.Errorf("Zone(%q) = %+v, %v", name, got, err)
		}
	}
	if got, err := (region.Region{Name: "x"}).Zone(""); err == nil {
		t.Errorf("a region without zones has %+v", got)
	}
}

func TestUnknown(t *testing.T) {
	for _, name := range []string{"", "local-1", "us-east-1a", "US-EAST-1", "us-east-1 ", "us-west-1", "cn-north-1"} {
		_, err := region.Find(name)
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "af-south-1, ap-east-1") || !strings.HasSuffix(err.Error(), "us-east-1, us-east-2, us-west-2") {
			t.Errorf("Find(%q): %v", name, err)
		}
	}
}

// A typing error in the table is a name or an id that no other has the form of, or that two have.
func TestTable(t *testing.T) {
	words := map[string]string{"central": "c", "east": "e", "north": "n", "northeast": "ne", "south": "s", "southeast": "se", "west": "w"}
	form := regexp.MustCompile(`^([a-z]{2})-([a-z]+)-([1-9])$`)
	names := region.Names()
	if !slices.IsSorted(names) || !slices.Contains(names, region.Default) {
		t.Errorf("names are %v", names)
	}
	for _, name := range names {
		parts := form.FindStringSubmatch(name)
		if parts == nil || words[parts[2]] == "" {
			t.Errorf("%s is not a region's name", name)
			continue
		}
		r, err := region.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, zone := range r.Zones {
			if want := name + string("abc"[i]); zone.Name != want {
				t.Errorf("zone %d of %s is called %s", i, name, zone.Name)
			}
			if prefix := parts[1] + words[parts[2]] + parts[3] + "-az"; !strings.HasPrefix(zone.ID, prefix) {
				t.Errorf("zone %s has the id %s, want %s…", zone.Name, zone.ID, prefix)
			}
		}
	}
}
