// SPDX-License-Identifier: Apache-2.0

package offering

import (
	"context"
	"slices"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// RegisterZones adds the actions about them to the front.
func (a *Actions) RegisterZones(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "DescribeAvailabilityZones", a.describeAvailabilityZones())
}

// zone is an availability zone as EC2 shows it.
type zone struct {
	ZoneName           string `filter:"zone-name"`
	ZoneID             string `filter:"zone-id"`
	ZoneType           string `filter:"zone-type"`
	State              string `filter:"state"`
	RegionName         string `filter:"region-name"`
	GroupName          string `filter:"group-name"`
	NetworkBorderGroup string
	OptInStatus        string `filter:"opt-in-status"`
	Messages           []struct{ Message string }
}

type describeZonesInput struct {
	ec2resource.Filtered
	AllAvailabilityZones bool // adds zones that need an opt-in; there are no such zones
	ZoneIDs              []string
	ZoneNames            []string
}

type describeZonesOutput struct{ AvailabilityZones []zone }

func (a *Actions) describeAvailabilityZones() awsfront.Spec[describeZonesInput, describeZonesOutput] {
	return awsfront.Spec[describeZonesInput, describeZonesOutput]{
		Do: func(_ context.Context, _ *awsfront.Call, in *describeZonesInput) (*describeZonesOutput, error) {
			match, err := zoneNoun().Match(in.Filters)
			if err != nil {
				return nil, err
			}
			out := &describeZonesOutput{AvailabilityZones: []zone{}}
			names, ids := map[string]bool{}, map[string]bool{}
			for _, own := range a.ec2.Place.Zones {
				names[own.Name], ids[own.ID] = true, true
				z := zone{
					ZoneName: own.Name, ZoneID: own.ID, ZoneType: "availability-zone", State: "available", RegionName: a.ec2.Region,
					GroupName: a.ec2.Region + "-zg-1", NetworkBorderGroup: a.ec2.Region, OptInStatus: "opt-in-not-required", Messages: []struct{ Message string }{},
				}
				named := len(in.ZoneNames) == 0 && len(in.ZoneIDs) == 0 || slices.Contains(in.ZoneNames, z.ZoneName) || slices.Contains(in.ZoneIDs, z.ZoneID)
				if named && match(&z) {
					out.AvailabilityZones = append(out.AvailabilityZones, z)
				}
			}
			for _, name := range in.ZoneNames {
				if !names[name] {
					return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Invalid availability zone: [%.64s]", name)
				}
			}
			for _, id := range in.ZoneIDs {
				if !ids[id] {
					return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Invalid availability zone-id: [%.64s]", id)
				}
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return out, nil
		},
	}
}

// zoneNoun is how zones are chosen.
func zoneNoun() ec2resource.Noun[zone] {
	return ec2resource.Noun[zone]{
		ID:     func(z *zone) string { return z.ZoneName },
		Fields: awsresource.FiltersOf[zone](),
		Rules:  ec2filter.Rules{Names: []string{"message", "parent-zone-id", "parent-zone-name"}}, // no zone has a value for them
	}
}
