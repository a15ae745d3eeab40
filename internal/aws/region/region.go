// SPDX-License-Identifier: Apache-2.0

// Package region knows the regions that an account can be in: the zones of each, and what the private DNS names of its
// instances end in. The names are those of AWS, for programs that take names apart or look them up in tables of their
// own.
//
// An account has three zones in its region, a, b and c. AWS's accounts have three or more, and which zone a letter
// stands for differs between accounts in the older regions; zone ids do not. The ids here are those of zones that EKS
// has, in ascending order. Not here are regions of other partitions (aws-cn, aws-us-gov), since all ARNs are of aws,
// and us-west-1, where an account has two zones.
package region

import (
	"fmt"
	"slices"
	"strings"
)

// Default is the region of an account that is made without one.
const Default = "us-east-1"

// Region is one region.
type Region struct {
	Name string
	// Zones are its zones a, b and c, in that order.
	Zones [3]Zone
}

// Zone is an availability zone.
type Zone struct {
	// Name is that of the region and a letter: us-east-1a.
	Name string
	// ID is what all accounts call it by: use1-az1.
	ID string
}

// prefixes are how the ids of a region's zones begin.
var prefixes = map[string]string{
	"af-south-1":     "afs1",
	"ap-east-1":      "ape1",
	"ap-east-2":      "ape2",
	"ap-northeast-1": "apne1",
	"ap-northeast-2": "apne2",
	"ap-northeast-3": "apne3",
	"ap-south-1":     "aps1",
	"ap-south-2":     "aps2",
	"ap-southeast-1": "apse1",
	"ap-southeast-2": "apse2",
	"ap-southeast-3": "apse3",
	"ap-southeast-4": "apse4",
	"ap-southeast-5": "apse5",
	"ap-southeast-6": "apse6",
	"ap-southeast-7": "apse7",
	"ca-central-1":   "cac1",
	"ca-west-1":      "caw1",
	"eu-central-1":   "euc1",
	"eu-central-2":   "euc2",
	"eu-north-1":     "eun1",
	"eu-south-1":     "eus1",
	"eu-south-2":     "eus2",
	"eu-west-1":      "euw1",
	"eu-west-2":      "euw2",
	"eu-west-3":      "euw3",
	"il-central-1":   "ilc1",
	"me-central-1":   "mec1",
	"me-south-1":     "mes1",
	"mx-central-1":   "mxc1",
	"sa-east-1":      "sae1",
	"us-east-1":      "use1",
	"us-east-2":      "use2",
	"us-west-2":      "usw2",
}

// withoutThird are the regions whose third zone takes no new instances or no clusters of EKS's.
var withoutThird = []string{"ap-northeast-1", "ca-central-1", "us-east-1"}

// Find returns a region by its name. The error lists the names there are, in one line.
func Find(name string) (Region, error) {
	prefix, ok := prefixes[name]
	if !ok {
		return Region{}, fmt.Errorf("unknown region %q; there are: %s", name, strings.Join(Names(), ", "))
	}
	r := Region{Name: name}
	numbers := [...]int{1, 2, 3}
	if slices.Contains(withoutThird, name) {
		numbers[2] = 4
	}
	for i, number := range numbers {
		r.Zones[i] = Zone{Name: fmt.Sprintf("%s%c", name, 'a'+i), ID: fmt.Sprintf("%s-az%d", prefix, number)}
	}
	return r, nil
}

// Names are the names of all regions, sorted.
func Names() []string {
	names := make([]string, 0, len(prefixes))
	for name := range prefixes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Zone returns one of the region's zones by its name.
func (r Region) Zone(name string) (Zone, error) {
	for _, zone := range r.Zones {
		if zone.Name == name && name != "" {
			return zone, nil
		}
	}
	return Zone{}, fmt.Errorf("%q is not a zone of %s, which are %s, %s and %s", name, r.Name, r.Zones[0].Name, r.Zones[1].Name, r.Zones[2].Name)
}

// Domain is what the private DNS names of instances end in: ip-10-0-1-5.ec2.internal in us-east-1, which is older than
// the form of all others, ip-10-0-1-5.eu-west-1.compute.internal (EC2's user guide, "EC2 instance hostnames and
// domains").
func (r Region) Domain() string {
	if r.Name == "us-east-1" {
		return "ec2.internal"
	}
	return r.Name + ".compute.internal"
}
