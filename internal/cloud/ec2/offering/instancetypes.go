// SPDX-License-Identifier: Apache-2.0

package offering

import (
	"context"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/machine/instancetype"
)

// RegisterInstanceTypes adds the actions about them to the front.
func (a *Actions) RegisterInstanceTypes(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "DescribeInstanceTypes", a.describeInstanceTypes())
	ec2resource.Register(a.ec2, f, "DescribeInstanceTypeOfferings", a.describeInstanceTypeOfferings())
	ec2resource.Register(a.ec2, f, "DescribeSpotPriceHistory", a.describeSpotPriceHistory())
}

// InstanceType is an instance type as EC2 shows it.
type InstanceType struct {
	InstanceType                  string        `filter:"instance-type"`
	CurrentGeneration             *bool         `filter:"current-generation"`
	FreeTierEligible              *bool         `filter:"free-tier-eligible"`
	BareMetal                     *bool         `filter:"bare-metal"`
	InstanceStorageSupported      *bool         `filter:"instance-storage-supported"`
	BurstablePerformanceSupported *bool         `filter:"burstable-performance-supported"`
	HibernationSupported          *bool         `filter:"hibernation-supported"`
	DedicatedHostsSupported       *bool         `filter:"dedicated-hosts-supported"`
	AutoRecoverySupported         *bool         `filter:"auto-recovery-supported"`
	Hypervisor                    string        `filter:"hypervisor"`
	SupportedUsageClasses         []string      `filter:"supported-usage-class"`
	SupportedVirtualizationTypes  []string      `filter:"supported-virtualization-type"`
	SupportedRootDeviceTypes      []string      `filter:"supported-root-device-type"`
	VCpuInfo                      vcpuInfo      `filter:"vcpu-info."`
	MemoryInfo                    memoryInfo    `filter:"memory-info."`
	ProcessorInfo                 processorInfo `filter:"processor-info."`
	NetworkInfo                   networkInfo   `filter:"network-info."`
	EbsInfo                       ebsInfo       `filter:"ebs-info."`
	// PlacementGroupInfo has no strategies; without it Terraform takes the type for one that is not there.
	PlacementGroupInfo struct{ SupportedStrategies []string }
}

type vcpuInfo struct {
	DefaultVCpus          *int64 `filter:"default-vcpus"`
	DefaultCores          *int64 `filter:"default-cores"`
	DefaultThreadsPerCore *int64 `filter:"default-threads-per-core"`
}

type memoryInfo struct {
	SizeInMiB *int64 `filter:"size-in-mib"`
}

type processorInfo struct {
	Manufacturer             string
	SupportedArchitectures   []string `filter:"supported-architecture"`
	SustainedClockSpeedInGhz *float64 `filter:"sustained-clock-speed-in-ghz"`
}

type networkInfo struct {
	NetworkPerformance           string `filter:"network-performance"`
	EnaSupport                   string `filter:"ena-support"`
	MaximumNetworkInterfaces     *int64 `filter:"maximum-network-interfaces"`
	MaximumNetworkCards          *int64 `filter:"maximum-network-cards"`
	DefaultNetworkCardIndex      *int64
	Ipv4AddressesPerInterface    *int64 `filter:"ipv4-addresses-per-interface"`
	Ipv6AddressesPerInterface    *int64
	Ipv6Supported                *bool `filter:"ipv6-supported"`
	EfaSupported                 *bool `filter:"efa-supported"`
	EncryptionInTransitSupported *bool
	NetworkCards                 []networkCard
}

type networkCard struct {
	NetworkCardIndex, MaximumNetworkInterfaces *int64
	NetworkPerformance                         string
}

type ebsInfo struct {
	EbsOptimizedSupport   string           `filter:"ebs-optimized-support"`
	EbsOptimizedInfo      ebsOptimizedInfo `filter:"ebs-optimized-info."`
	EncryptionSupport     string           `filter:"encryption-support"`
	NvmeSupport           string           `filter:"nvme-support"`
	AttachmentLimitType   string
	MaximumEbsAttachments *int64
}

type ebsOptimizedInfo struct {
	BaselineBandwidthInMbps  *int64   `filter:"baseline-bandwidth-in-mbps"`
	BaselineThroughputInMBps *float64 `filter:"baseline-throughput-in-mbps"`
	BaselineIops             *int64   `filter:"baseline-iops"`
	MaximumBandwidthInMbps   *int64   `filter:"maximum-bandwidth-in-mbps"`
	MaximumThroughputInMBps  *float64 `filter:"maximum-throughput-in-mbps"`
	MaximumIops              *int64   `filter:"maximum-iops"`
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
		Hypervisor: "nitro", SupportedUsageClasses: []string{"on-demand", "spot"}, SupportedVirtualizationTypes: []string{"hvm"}, SupportedRootDeviceTypes: []string{"ebs"},
		VCpuInfo:      vcpuInfo{new(int64(t.VCPUs)), new(int64(t.Cores)), new(int64(instancetype.ThreadsPerCore))},
		ProcessorInfo: processorInfo{t.Manufacturer, []string{instancetype.Architecture}, new(t.ClockGHz)},
		NetworkInfo: networkInfo{
			NetworkPerformance: t.Network, EnaSupport: "required", MaximumNetworkInterfaces: nics, MaximumNetworkCards: new(int64(1)), DefaultNetworkCardIndex: new(int64(0)),
			Ipv4AddressesPerInterface: new(int64(addresses)), Ipv6AddressesPerInterface: new(int64(addresses)), Ipv6Supported: new(true), EfaSupported: new(false),
			EncryptionInTransitSupported: new(false), NetworkCards: []networkCard{{new(int64(0)), nics, t.Network}},
		},
		EbsInfo: ebsInfo{"default", showEBS(t.EBS), "supported", "required", "shared", new(int64(maxAttachments))},
	}
	info.MemoryInfo.SizeInMiB, info.PlacementGroupInfo.SupportedStrategies = new(t.MemoryMiB), []string{}
	return info
}

func showEBS(e instancetype.EBS) ebsOptimizedInfo {
	return ebsOptimizedInfo{new(e.BaselineMbps), new(e.BaselineMBps()), new(e.BaselineIOPS), new(e.MaximumMbps), new(e.MaximumMBps()), new(e.MaximumIOPS)}
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
	return ec2resource.Noun[InstanceType]{ID: func(i *InstanceType) string { return i.InstanceType }, Fields: awsresource.FiltersOf[InstanceType]()}
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
