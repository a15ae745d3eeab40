// SPDX-License-Identifier: Apache-2.0

package offering

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/machine/instancetype"
)

// RegisterInstanceTypes adds the actions about them to the front.
func (a *Actions) RegisterInstanceTypes(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "DescribeInstanceTypes", a.describeInstanceTypes())
	ec2resource.Register(a.ec2, f, "DescribeInstanceTypeOfferings", a.describeInstanceTypeOfferings())
}

// InstanceType is an instance type as EC2 shows it.
type InstanceType struct {
	InstanceType                                                                  string
	CurrentGeneration, FreeTierEligible, BareMetal, InstanceStorageSupported      *bool
	BurstablePerformanceSupported, HibernationSupported, DedicatedHostsSupported  *bool
	AutoRecoverySupported                                                         *bool
	Hypervisor                                                                    string
	SupportedUsageClasses, SupportedVirtualizationTypes, SupportedRootDeviceTypes []string
	VCpuInfo                                                                      vcpuInfo
	MemoryInfo                                                                    struct{ SizeInMiB *int64 }
	ProcessorInfo                                                                 processorInfo
	NetworkInfo                                                                   networkInfo
	EbsInfo                                                                       ebsInfo
	// PlacementGroupInfo has no strategies; without it Terraform takes the type for one that is not there.
	PlacementGroupInfo struct{ SupportedStrategies []string }
}

type vcpuInfo struct{ DefaultVCpus, DefaultCores, DefaultThreadsPerCore *int64 }

type processorInfo struct {
	Manufacturer             string
	SupportedArchitectures   []string
	SustainedClockSpeedInGhz *float64
}

type networkInfo struct {
	NetworkPerformance, EnaSupport                                         string
	MaximumNetworkInterfaces, MaximumNetworkCards, DefaultNetworkCardIndex *int64
	Ipv4AddressesPerInterface, Ipv6AddressesPerInterface                   *int64
	Ipv6Supported, EfaSupported, EncryptionInTransitSupported              *bool
	NetworkCards                                                           []networkCard
}

type networkCard struct {
	NetworkCardIndex, MaximumNetworkInterfaces *int64
	NetworkPerformance                         string
}

type ebsInfo struct {
	EbsOptimizedSupport, EncryptionSupport, NvmeSupport, AttachmentLimitType string
	MaximumEbsAttachments                                                    *int64
}

// maxAttachments is how many volumes and interfaces together all types of the catalogue have.
const maxAttachments = 28

// ShowInstanceType is an instance type as DescribeInstanceTypes answers it.
func ShowInstanceType(t instancetype.Type) InstanceType {
	interfaces, addresses := t.Interfaces()
	nics := new(int64(interfaces))
	info := InstanceType{
		InstanceType: t.Name, CurrentGeneration: new(t.Current), FreeTierEligible: new(t.FreeTier), BareMetal: new(false), InstanceStorageSupported: new(false),
		BurstablePerformanceSupported: new(t.Burstable), HibernationSupported: new(false), DedicatedHostsSupported: new(false), AutoRecoverySupported: new(false),
		Hypervisor: "nitro", SupportedUsageClasses: []string{"on-demand"}, SupportedVirtualizationTypes: []string{"hvm"}, SupportedRootDeviceTypes: []string{"ebs"},
		VCpuInfo:      vcpuInfo{new(int64(t.VCPUs)), new(int64(t.Cores)), new(int64(instancetype.ThreadsPerCore))},
		ProcessorInfo: processorInfo{t.Manufacturer, []string{instancetype.Architecture}, new(t.ClockGHz)},
		NetworkInfo: networkInfo{
			NetworkPerformance: t.Network, EnaSupport: "required", MaximumNetworkInterfaces: nics, MaximumNetworkCards: new(int64(1)), DefaultNetworkCardIndex: new(int64(0)),
			Ipv4AddressesPerInterface: new(int64(addresses)), Ipv6AddressesPerInterface: new(int64(addresses)), Ipv6Supported: new(true), EfaSupported: new(false),
			EncryptionInTransitSupported: new(false), NetworkCards: []networkCard{{new(int64(0)), nics, t.Network}},
		},
		EbsInfo: ebsInfo{"default", "supported", "required", "shared", new(int64(maxAttachments))},
	}
	info.MemoryInfo.SizeInMiB, info.PlacementGroupInfo.SupportedStrategies = new(t.MemoryMiB), []string{}
	return info
}

type describeInstanceTypesInput struct {
	ec2resource.Paged
	InstanceTypes              []string
	IncludeUnsupportedInRegion bool // there is none
}

type describeInstanceTypesOutput struct {
	InstanceTypes []InstanceType
	NextToken     string
}

func (a *Actions) describeInstanceTypes() awsfront.Spec[describeInstanceTypesInput, describeInstanceTypesOutput] {
	return awsfront.Spec[describeInstanceTypesInput, describeInstanceTypesOutput]{
		Do: func(_ context.Context, call *awsfront.Call, in *describeInstanceTypesInput) (*describeInstanceTypesOutput, error) {
			var unknown []string
			for _, name := range in.InstanceTypes {
				if _, err := instancetype.Find(name); err != nil {
					unknown = append(unknown, name)
				}
			}
			if len(unknown) > 0 {
				return nil, awsfault.Errorf("InvalidInstanceType", "The following supplied instance types do not exist: [%.300s]", strings.Join(unknown, ", "))
			}
			var shown []InstanceType
			for _, t := range instancetype.All() {
				if len(in.InstanceTypes) == 0 || slices.Contains(in.InstanceTypes, t.Name) {
					shown = append(shown, ShowInstanceType(t))
				}
			}
			out := &describeInstanceTypesOutput{}
			var err error
			out.InstanceTypes, out.NextToken, err = ec2resource.Choose(a.ec2, call, InstanceTypeNoun(), shown, nil, in.Paged)
			return out, err
		},
	}
}

// InstanceTypeNoun is how DescribeInstanceTypes chooses.
func InstanceTypeNoun() ec2resource.Noun[InstanceType] {
	values := map[string]func(*InstanceType) string{
		"auto-recovery-supported":            func(*InstanceType) string { return "false" },
		"bare-metal":                         func(*InstanceType) string { return "false" },
		"burstable-performance-supported":    func(i *InstanceType) string { return ec2resource.Text(*i.BurstablePerformanceSupported) },
		"current-generation":                 func(i *InstanceType) string { return ec2resource.Text(*i.CurrentGeneration) },
		"dedicated-hosts-supported":          func(*InstanceType) string { return "false" },
		"ebs-info.ebs-optimized-support":     func(i *InstanceType) string { return i.EbsInfo.EbsOptimizedSupport },
		"ebs-info.encryption-support":        func(i *InstanceType) string { return i.EbsInfo.EncryptionSupport },
		"ebs-info.nvme-support":              func(i *InstanceType) string { return i.EbsInfo.NvmeSupport },
		"free-tier-eligible":                 func(i *InstanceType) string { return ec2resource.Text(*i.FreeTierEligible) },
		"hibernation-supported":              func(*InstanceType) string { return "false" },
		"hypervisor":                         func(i *InstanceType) string { return i.Hypervisor },
		"instance-storage-supported":         func(*InstanceType) string { return "false" },
		"instance-type":                      func(i *InstanceType) string { return i.InstanceType },
		"memory-info.size-in-mib":            func(i *InstanceType) string { return strconv.FormatInt(*i.MemoryInfo.SizeInMiB, 10) },
		"network-info.ena-support":           func(i *InstanceType) string { return i.NetworkInfo.EnaSupport },
		"network-info.efa-supported":         func(*InstanceType) string { return "false" },
		"network-info.ipv6-supported":        func(*InstanceType) string { return "true" },
		"network-info.network-performance":   func(i *InstanceType) string { return i.NetworkInfo.NetworkPerformance },
		"network-info.maximum-network-cards": func(*InstanceType) string { return "1" },
		"network-info.maximum-network-interfaces": func(i *InstanceType) string {
			return strconv.FormatInt(*i.NetworkInfo.MaximumNetworkInterfaces, 10)
		},
		"network-info.ipv4-addresses-per-interface": func(i *InstanceType) string {
			return strconv.FormatInt(*i.NetworkInfo.Ipv4AddressesPerInterface, 10)
		},
		"processor-info.supported-architecture": func(*InstanceType) string { return instancetype.Architecture },
		"processor-info.sustained-clock-speed-in-ghz": func(i *InstanceType) string {
			return strconv.FormatFloat(*i.ProcessorInfo.SustainedClockSpeedInGhz, 'f', -1, 64)
		},
		"supported-root-device-type":         func(*InstanceType) string { return "ebs" },
		"supported-usage-class":              func(*InstanceType) string { return "on-demand" },
		"supported-virtualization-type":      func(*InstanceType) string { return "hvm" },
		"vcpu-info.default-cores":            func(i *InstanceType) string { return strconv.FormatInt(*i.VCpuInfo.DefaultCores, 10) },
		"vcpu-info.default-threads-per-core": func(i *InstanceType) string { return strconv.FormatInt(*i.VCpuInfo.DefaultThreadsPerCore, 10) },
		"vcpu-info.default-vcpus":            func(i *InstanceType) string { return strconv.FormatInt(*i.VCpuInfo.DefaultVCpus, 10) },
	}
	var names []string
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return ec2resource.Noun[InstanceType]{
		ID: func(i *InstanceType) string { return i.InstanceType }, Rules: ec2filter.Rules{Names: names},
		Values: func(i *InstanceType, name string) []string { return []string{values[name](i)} },
	}
}

type describeOfferingsInput struct {
	ec2resource.Paged
	LocationType string
}

type describeOfferingsOutput struct {
	InstanceTypeOfferings []instanceTypeOffering
	NextToken             string
}

type instanceTypeOffering struct {
	InstanceType string `filter:"instance-type"`
	LocationType string
	Location     string `filter:"location"`
}

// describeInstanceTypeOfferings answers that every type is everywhere.
func (a *Actions) describeInstanceTypeOfferings() awsfront.Spec[describeOfferingsInput, describeOfferingsOutput] {
	return awsfront.Spec[describeOfferingsInput, describeOfferingsOutput]{
		Do: func(_ context.Context, call *awsfront.Call, in *describeOfferingsInput) (*describeOfferingsOutput, error) {
			if err := ec2resource.Only("LocationType", in.LocationType, "region", "availability-zone", "availability-zone-id"); err != nil {
				return nil, err
			}
			locations, kind := []string{a.ec2.Region}, "region"
			if in.LocationType != "" && in.LocationType != kind {
				locations, kind = nil, in.LocationType
				for _, z := range a.ec2.Place.Zones {
					locations = append(locations, map[string]string{"availability-zone": z.Name, "availability-zone-id": z.ID}[kind])
				}
			}
			var all []instanceTypeOffering
			for _, t := range instancetype.All() {
				for _, location := range locations {
					all = append(all, instanceTypeOffering{t.Name, kind, location})
				}
			}
			out := &describeOfferingsOutput{}
			var err error
			out.InstanceTypeOfferings, out.NextToken, err = ec2resource.Choose(a.ec2, call, ec2resource.Noun[instanceTypeOffering]{
				ID: func(o *instanceTypeOffering) string { return o.InstanceType + "/" + o.Location }, Fields: awsresource.FiltersOf[instanceTypeOffering](),
			}, all, nil, in.Paged)
			return out, err
		},
	}
}
