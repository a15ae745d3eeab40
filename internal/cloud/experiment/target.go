// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// mostChosen is FIS's limit of the instances of a target.
const mostChosen = 5

// mostARNs is FIS's limit of the ARNs of a target.
const mostARNs = 5

// Instance is what targets choose by.
type Instance struct {
	ID, ARN string
	// State is in EC2's words, such as running.
	State, Zone, Type, Subnet, VPC string
	Tags                           map[string]string
	// Cannot says why the instance can have no drill; empty if it can.
	Cannot string
}

// paths are the attributes of instances that filters can name, in the form that DescribeInstances has them.
func (i *Instance) paths() map[string]string {
	return map[string]string{
		"State.Name": i.State, "Placement.AvailabilityZone": i.Zone, "InstanceType": i.Type, "SubnetId": i.Subnet, "VpcId": i.VPC,
	}
}

var modeForm = regexp.MustCompile(`^(?:ALL|(COUNT|PERCENT)\((\d{1,3})\))$`)

// mode reads the mode of a target: share is that of PERCENT, count that of COUNT; both are 0 for ALL.
func (t Target) mode() (share, count int, err error) {
	parts := modeForm.FindStringSubmatch(t.Mode)
	if parts == nil {
		return 0, 0, fmt.Errorf("the selectionMode is %.50q: it must be ALL, COUNT(n) or PERCENT(n)", t.Mode)
	}
	if parts[1] == "" {
		return 0, 0, nil
	}
	n, err := strconv.Atoi(parts[2])
	switch {
	case err != nil || n < 1:
		return 0, 0, fmt.Errorf("the selectionMode is %.50q: the number must be at least 1", t.Mode)
	case parts[1] == "COUNT":
		return 0, n, nil
	case n > 100:
		return 0, 0, fmt.Errorf("the selectionMode is %.50q: the percentage must be from 1 to 100", t.Mode)
	}
	return n, 0, nil
}

func (t Target) check() error {
	if _, _, err := t.mode(); err != nil {
		return err
	}
	switch {
	case t.ResourceType != SpotInstance:
		return fmt.Errorf("the resourceType is %.100q: Muster has %s only", t.ResourceType, SpotInstance)
	case (len(t.ARNs) == 0) == (len(t.Tags) == 0):
		return errors.New("it must have resourceArns or resourceTags, and not both")
	case len(t.ARNs) > mostARNs:
		return fmt.Errorf("it has %d resourceArns: there may be %d", len(t.ARNs), mostARNs)
	case len(t.ARNs) > 0 && len(t.Filters) > 0:
		return errors.New("it has filters and resourceArns: filters go with resourceTags")
	}
	known := (&Instance{}).paths()
	for _, f := range t.Filters {
		if _, ok := known[f.Path]; !ok || len(f.Values) == 0 {
			return fmt.Errorf("a filter has the path %.100q and %d values: it must have one of %q, and a value", f.Path, len(f.Values), slices.Sorted(maps.Keys(known)))
		}
	}
	return nil
}

// Choose returns the ids of the instances that a target chooses, sorted. COUNT and PERCENT choose by chance, which the
// seed, such as the id of the experiment, decides. The error says why the target cannot be resolved.
func (t Target) Choose(seed string, all []Instance) ([]string, error) {
	var fit []Instance
	for i := range all {
		if t.fits(&all[i]) {
			fit = append(fit, all[i])
		}
	}
	for _, arn := range t.ARNs {
		if !slices.ContainsFunc(fit, func(i Instance) bool { return i.ARN == arn }) {
			return nil, fmt.Errorf("there is no spot instance %.200s", arn)
		}
	}
	share, count, err := t.mode()
	switch {
	case err != nil:
		return nil, err
	case share > 0:
		count = max(len(fit)*share/100, 1)
	case count == 0:
		count = len(fit)
	}
	slices.SortFunc(fit, func(x, y Instance) int {
		return cmp.Compare(chance(seed, x.ID), chance(seed, y.ID))
	})
	fit = fit[:min(count, len(fit))]
	if len(fit) > mostChosen {
		return nil, fmt.Errorf("it resolves to %d instances: there may be %d", len(fit), mostChosen)
	}
	ids := make([]string, 0, len(fit))
	for i := range fit {
		if fit[i].Cannot != "" {
			return nil, fmt.Errorf("instance %s cannot be interrupted: %s", fit[i].ID, fit[i].Cannot)
		}
		ids = append(ids, fit[i].ID)
	}
	slices.Sort(ids)
	return ids, nil
}

// chance is where an instance stands in the order of a seed.
func chance(seed, id string) string {
	sum := sha256.Sum256([]byte(seed + "/" + id))
	return string(sum[:])
}

// fits reports whether a target may choose an instance.
func (t Target) fits(i *Instance) bool {
	if len(t.ARNs) > 0 {
		return slices.Contains(t.ARNs, i.ARN)
	}
	for key, value := range t.Tags {
		if has, ok := i.Tags[key]; !ok || has != value {
			return false
		}
	}
	has := i.paths()
	for _, f := range t.Filters {
		if !slices.Contains(f.Values, has[f.Path]) {
			return false
		}
	}
	return true
}
