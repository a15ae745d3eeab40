// SPDX-License-Identifier: Apache-2.0

package instancetype

// catalogue are the types, by family and size. The figures are what EC2's DescribeInstanceTypes says of them, as
// recorded in August 2026 by two projects that agree: getmoto/moto, moto/ec2/resources/instance_types.json (0af643a5),
// and kubernetes/autoscaler, cluster-autoscaler/cloudprovider/aws/ec2_instance_types.go (55c37cd5). Types of arm64,
// such as t4g, are left out: nothing here runs them. The figures of EBS are the first project's, and its highest bandwidths are those
// of Karpenter's website/content/en/preview/reference/instance-types.md (aws/karpenter-provider-aws, 1d927085d), too. Prices are those of
// Linux on demand in us-east-1, as Karpenter's pkg/providers/pricing/zz_generated.pricing_aws.go (aws/karpenter-provider-aws, 031e72b6)
// repeats AWS's price list.
func catalogue() []Type {
	return []Type{
		{Name: "t3.small", VCPUs: 2, Cores: 1, MemoryMiB: 2048, Manufacturer: "Intel", ClockGHz: 2.5, Network: "Up to 5 Gigabit", Burstable: true, Current: true, FreeTier: true, USD: 0.0208, EBS: EBS{174, 1000, 2085, 11800}},
		{Name: "t3.medium", VCPUs: 2, Cores: 1, MemoryMiB: 4096, Manufacturer: "Intel", ClockGHz: 2.5, Network: "Up to 5 Gigabit", Burstable: true, Current: true, USD: 0.0416, EBS: EBS{347, 2000, 2085, 11800}},
		{Name: "t3.large", VCPUs: 2, Cores: 1, MemoryMiB: 8192, Manufacturer: "Intel", ClockGHz: 2.5, Network: "Up to 5 Gigabit", Burstable: true, Current: true, USD: 0.0832, EBS: EBS{695, 4000, 2780, 15700}},
		{Name: "t3.xlarge", VCPUs: 4, Cores: 2, MemoryMiB: 16384, Manufacturer: "Intel", ClockGHz: 2.5, Network: "Up to 5 Gigabit", Burstable: true, Current: true, USD: 0.1664, EBS: EBS{695, 4000, 2780, 15700}},
		{Name: "t3.2xlarge", VCPUs: 8, Cores: 4, MemoryMiB: 32768, Manufacturer: "Intel", ClockGHz: 2.5, Network: "Up to 5 Gigabit", Burstable: true, Current: true, USD: 0.3328, EBS: EBS{695, 4000, 2780, 15700}},
		{Name: "t3a.medium", VCPUs: 2, Cores: 1, MemoryMiB: 4096, Manufacturer: "AMD", ClockGHz: 2.2, Network: "Up to 5 Gigabit", Burstable: true, Current: true, USD: 0.0376, EBS: EBS{350, 2000, 2085, 11800}},
		{Name: "t3a.large", VCPUs: 2, Cores: 1, MemoryMiB: 8192, Manufacturer: "AMD", ClockGHz: 2.2, Network: "Up to 5 Gigabit", Burstable: true, Current: true, USD: 0.0752, EBS: EBS{695, 4000, 2780, 15700}},
		{Name: "m5.large", VCPUs: 2, Cores: 1, MemoryMiB: 8192, Manufacturer: "Intel", ClockGHz: 3.1, Network: "Up to 10 Gigabit", USD: 0.096, EBS: EBS{650, 3600, 4750, 18750}},
		{Name: "m5.xlarge", VCPUs: 4, Cores: 2, MemoryMiB: 16384, Manufacturer: "Intel", ClockGHz: 3.1, Network: "Up to 10 Gigabit", USD: 0.192, EBS: EBS{1150, 6000, 4750, 18750}},
		{Name: "m5.2xlarge", VCPUs: 8, Cores: 4, MemoryMiB: 32768, Manufacturer: "Intel", ClockGHz: 3.1, Network: "Up to 10 Gigabit", USD: 0.384, EBS: EBS{2300, 12000, 4750, 18750}},
		{Name: "m5.4xlarge", VCPUs: 16, Cores: 8, MemoryMiB: 65536, Manufacturer: "Intel", ClockGHz: 3.1, Network: "Up to 10 Gigabit", USD: 0.768, EBS: EBS{4750, 18750, 4750, 18750}},
		{Name: "m6i.large", VCPUs: 2, Cores: 1, MemoryMiB: 8192, Manufacturer: "Intel", ClockGHz: 3.5, Network: "Up to 12.5 Gigabit", USD: 0.096, EBS: EBS{650, 3600, 10000, 40000}},
		{Name: "m6i.xlarge", VCPUs: 4, Cores: 2, MemoryMiB: 16384, Manufacturer: "Intel", ClockGHz: 3.5, Network: "Up to 12.5 Gigabit", USD: 0.192, EBS: EBS{1250, 6000, 10000, 40000}},
		{Name: "m6i.2xlarge", VCPUs: 8, Cores: 4, MemoryMiB: 32768, Manufacturer: "Intel", ClockGHz: 3.5, Network: "Up to 12.5 Gigabit", USD: 0.384, EBS: EBS{2500, 12000, 10000, 40000}},
		{Name: "c5.large", VCPUs: 2, Cores: 1, MemoryMiB: 4096, Manufacturer: "Intel", ClockGHz: 3.4, Network: "Up to 10 Gigabit", USD: 0.085, EBS: EBS{650, 4000, 4750, 20000}},
		{Name: "c5.xlarge", VCPUs: 4, Cores: 2, MemoryMiB: 8192, Manufacturer: "Intel", ClockGHz: 3.4, Network: "Up to 10 Gigabit", USD: 0.17, EBS: EBS{1150, 6000, 4750, 20000}},
		{Name: "c5.2xlarge", VCPUs: 8, Cores: 4, MemoryMiB: 16384, Manufacturer: "Intel", ClockGHz: 3.4, Network: "Up to 10 Gigabit", USD: 0.34, EBS: EBS{2300, 10000, 4750, 20000}},
		{Name: "c6i.large", VCPUs: 2, Cores: 1, MemoryMiB: 4096, Manufacturer: "Intel", ClockGHz: 3.5, Network: "Up to 12.5 Gigabit", Current: true, USD: 0.085, EBS: EBS{650, 3600, 10000, 40000}},
		{Name: "r5.large", VCPUs: 2, Cores: 1, MemoryMiB: 16384, Manufacturer: "Intel", ClockGHz: 3.1, Network: "Up to 10 Gigabit", USD: 0.126, EBS: EBS{650, 3600, 4750, 18750}},
		{Name: "r5.xlarge", VCPUs: 4, Cores: 2, MemoryMiB: 32768, Manufacturer: "Intel", ClockGHz: 3.1, Network: "Up to 10 Gigabit", USD: 0.252, EBS: EBS{1150, 6000, 4750, 18750}},
	}
}
