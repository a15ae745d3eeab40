// SPDX-License-Identifier: Apache-2.0

package offering

import (
	"context"
	"slices"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/ec2vpc"
)

// RegisterAccount adds the actions about them to the front.
func (a *Actions) RegisterAccount(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "DescribeAccountAttributes", a.describeAccountAttributes())
	ec2resource.Register(a.ec2, f, "DescribeDhcpOptions", a.describeDHCPOptions())
	ec2resource.Register(a.ec2, f, "DescribeRegions", a.describeRegions())
}

type describeRegionsInput struct {
	ec2resource.Filtered
	AllRegions  bool
	RegionNames []string
}

type describedRegion struct {
	RegionName  string `filter:"region-name"`
	Endpoint    string `filter:"endpoint"`
	OptInStatus string `filter:"opt-in-status"`
}

type describeRegionsOutput struct{ Regions []describedRegion }

// describeRegions shows the account's region. The others of AWS are there if all are asked for, as regions that the
// account has not opted in to.
func (a *Actions) describeRegions() awsfront.Spec[describeRegionsInput, describeRegionsOutput] {
	return awsfront.Spec[describeRegionsInput, describeRegionsOutput]{
		Do: func(_ context.Context, _ *awsfront.Call, in *describeRegionsInput) (*describeRegionsOutput, error) {
			match, err := regionNoun().Match(in.Filters)
			if err != nil {
				return nil, err
			}
			known := region.Names()
			for _, name := range in.RegionNames {
				if !slices.Contains(known, name) {
					return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Invalid values found for region name: %.64s", name)
				}
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			out := &describeRegionsOutput{Regions: []describedRegion{}}
			for _, name := range known {
				r := describedRegion{RegionName: name, Endpoint: "ec2." + name + ".amazonaws.com", OptInStatus: "not-opted-in"}
				if name == a.ec2.Region {
					r.OptInStatus = "opt-in-not-required"
				} else if !in.AllRegions {
					continue
				}
				named := len(in.RegionNames) == 0 || slices.Contains(in.RegionNames, name)
				if named && match(&r) {
					out.Regions = append(out.Regions, r)
				}
			}
			return out, nil
		},
	}
}

// regionNoun is how regions are chosen.
func regionNoun() ec2resource.Noun[describedRegion] {
	return ec2resource.Noun[describedRegion]{
		ID: func(r *describedRegion) string { return r.RegionName }, Fields: awsresource.FiltersOf[describedRegion](),
	}
}

type accountAttributesInput struct {
	AttributeNames []string
	DryRun         bool
}

type accountAttribute struct {
	AttributeName   string
	AttributeValues []struct{ AttributeValue string }
}

type accountAttributesOutput struct{ AccountAttributes []accountAttribute }

// describeAccountAttributes shows what the account has of EC2's attributes. The others are limits that Muster does not
// have.
func (a *Actions) describeAccountAttributes() awsfront.Spec[accountAttributesInput, accountAttributesOutput] {
	limits := []string{"max-instances", "vpc-max-security-groups-per-interface", "max-elastic-ips", "vpc-max-elastic-ips"}
	return awsfront.Spec[accountAttributesInput, accountAttributesOutput]{
		Do: func(ctx context.Context, _ *awsfront.Call, in *accountAttributesInput) (*accountAttributesOutput, error) {
			main, err := a.vpcs.DefaultVPC(ctx)
			if err != nil {
				return nil, err
			}
			has := map[string]string{"supported-platforms": "VPC", "default-vpc": "none"}
			if main != nil {
				has["default-vpc"] = main.Name
			}
			for _, name := range in.AttributeNames {
				if _, ok := has[name]; !ok && !slices.Contains(limits, name) {
					return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Value (%.64s) for parameter attributeName is invalid. Unknown account attribute.", name)
				}
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			out := &accountAttributesOutput{AccountAttributes: []accountAttribute{}}
			for _, name := range []string{"supported-platforms", "default-vpc"} {
				if len(in.AttributeNames) == 0 || slices.Contains(in.AttributeNames, name) {
					out.AccountAttributes = append(out.AccountAttributes, accountAttribute{name, []struct{ AttributeValue string }{{has[name]}}})
				}
			}
			return out, nil
		},
	}
}

type dhcpValue struct {
	Value string `filter:"value"`
}

type dhcpConfiguration struct {
	Key    string      `filter:"key"`
	Values []dhcpValue `filter:""`
}

type dhcpOptions struct {
	DhcpOptionsID      string              `filter:"dhcp-options-id"`
	OwnerID            string              `filter:"owner-id"`
	DhcpConfigurations []dhcpConfiguration `filter:""`
	Tags               []awstag.Tag
}

type describeDHCPOptionsInput struct {
	ec2resource.Paged
	DhcpOptionsIDs []string
}

type describeDHCPOptionsOutput struct {
	DhcpOptions []dhcpOptions
	NextToken   string
}

// describeDHCPOptions shows the one set of options that all VPCs have.
func (a *Actions) describeDHCPOptions() awsfront.Spec[describeDHCPOptionsInput, describeDHCPOptionsOutput] {
	options := ec2resource.Noun[dhcpOptions]{
		Kind: ec2id.DHCPOptions, Fields: awsresource.FiltersOf[dhcpOptions](),
		ID:   func(o *dhcpOptions) string { return o.DhcpOptionsID },
		Tags: func(*dhcpOptions) map[string]string { return nil },
	}
	return awsfront.Spec[describeDHCPOptionsInput, describeDHCPOptionsOutput]{
		Do: func(_ context.Context, call *awsfront.Call, in *describeDHCPOptionsInput) (*describeDHCPOptionsOutput, error) {
			all := []dhcpOptions{{
				DhcpOptionsID: ec2vpc.DhcpOptionsID(call), OwnerID: call.Caller.Account(), Tags: []awstag.Tag{},
				DhcpConfigurations: []dhcpConfiguration{{"domain-name", []dhcpValue{{a.ec2.Place.Domain()}}}, {"domain-name-servers", []dhcpValue{{"AmazonProvidedDNS"}}}},
			}}
			out := &describeDHCPOptionsOutput{}
			var err error
			out.DhcpOptions, out.NextToken, err = ec2resource.Choose(a.ec2, call, options, all, in.DhcpOptionsIDs, in.Paged)
			return out, err
		},
	}
}
