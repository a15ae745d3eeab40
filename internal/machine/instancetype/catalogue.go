// SPDX-License-Identifier: Apache-2.0

package instancetype

// catalogue are the types, by family and size. The figures are what EC2's DescribeInstanceTypes says of them, as
// recorded in August 2026 by two projects that agree: getmoto/moto, moto/ec2/resources/instance_types.json (0af643a5),
// and kubernetes/autoscaler, cluster-autoscaler/cloudprovider/aws/ec2_instance_types.go (55c37cd5). Types of arm64,
// such as t4g, are left out: nothing here runs them.
func catalogue() []Type {
	return []Type{
		{Name: "t3.small", VCPUs: 2, Cores: 1, MemoryMiB: 2048, Manufacturer: "Intel", ClockGHz: 2.5, Network: "Up to 5 Gigabit", Burstable: true, Current: true, FreeTier: true},
		{Name: "t3.medium", VCPUs: 2, Cores: 1, MemoryMiB: 4096, Manufacturer: "Intel", ClockGHz: 2.5, Network: "Up to 5 Gigabit", Burstable: true, Current: true},
		{Name: "t3.large", VCPUs: 2, Cores: 1, MemoryMiB: 8192, Manufacturer: "Intel", ClockGHz: 2.5, Network: "Up to 5 Gigabit", Burstable: true, Current: true},
		{Name: "t3.xlarge", VCPUs: 4, Cores: 2, MemoryMiB: 16384, Manufacturer: "Intel", ClockGHz: 2.5, Network: "Up to 5 Gigabit", Burstable: true, Current: true},
		{Name: "t3.2xlarge", VCPUs: 8, Cores: 4, MemoryMiB: 32768, Manufacturer: "Intel", ClockGHz: 2.5, Network: "Up to 5 Gigabit", Burstable: true, Current: true},
		{Name: "t3a.medium", VCPUs: 2, Cores: 1, MemoryMiB: 4096, Manufacturer: "AMD", ClockGHz: 2.2, Network: "Up to 5 Gigabit", Burstable: true, Current: true},
		{Name: "t3a.large", VCPUs: 2, Cores: 1, MemoryMiB: 8192, Manufacturer: "AMD", ClockGHz: 2.2, Network: "Up to 5 Gigabit", Burstable: true, Current: true},
		{Name: "m5.large", VCPUs: 2, Cores: 1, MemoryMiB: 8192, Manufacturer: "Intel", ClockGHz: 3.1, Network: "Up to 10 Gigabit"},
		{Name: "m5.xlarge", VCPUs: 4, Cores: 2, MemoryMiB: 16384, Manufacturer: "Intel", ClockGHz: 3.1, Network: "Up to 10 Gigabit"},
		{Name: "m5.2xlarge", VCPUs: 8, Cores: 4, MemoryMiB: 32768, Manufacturer: "Intel", ClockGHz: 3.1, Network: "Up to 10 Gigabit"},
		{Name: "m5.4xlarge", VCPUs: 16, Cores: 8, MemoryMiB: 65536, Manufacturer: "Intel", ClockGHz: 3.1, Network: "Up to 10 Gigabit"},
		{Name: "m6i.large", VCPUs: 2, Cores: 1, MemoryMiB: 8192, Manufacturer: "Intel", ClockGHz: 3.5, Network: "Up to 12.5 Gigabit"},
		{Name: "m6i.xlarge", VCPUs: 4, Cores: 2, MemoryMiB: 16384, Manufacturer: "Intel", ClockGHz: 3.5, Network: "Up to 12.5 Gigabit"},
		{Name: "m6i.2xlarge", VCPUs: 8, Cores: 4, MemoryMiB: 32768, Manufacturer: "Intel", ClockGHz: 3.5, Network: "Up to 12.5 Gigabit"},
		{Name: "c5.large", VCPUs: 2, Cores: 1, MemoryMiB: 4096, Manufacturer: "Intel", ClockGHz: 3.4, Network: "Up to 10 Gigabit"},
		{Name: "c5.xlarge", VCPUs: 4, Cores: 2, MemoryMiB: 8192, Manufacturer: "Intel", ClockGHz: 3.4, Network: "Up to 10 Gigabit"},
		{Name: "c5.2xlarge", VCPUs: 8, Cores: 4, MemoryMiB: 16384, Manufacturer: "Intel", ClockGHz: 3.4, Network: "Up to 10 Gigabit"},
		{Name: "c6i.large", VCPUs: 2, Cores: 1, MemoryMiB: 4096, Manufacturer: "Intel", ClockGHz: 3.5, Network: "Up to 12.5 Gigabit", Current: true},
		{Name: "r5.large", VCPUs: 2, Cores: 1, MemoryMiB: 16384, Manufacturer: "Intel", ClockGHz: 3.1, Network: "Up to 10 Gigabit"},
		{Name: "r5.xlarge", VCPUs: 4, Cores: 2, MemoryMiB: 32768, Manufacturer: "Intel", ClockGHz: 3.1, Network: "Up to 10 Gigabit"},
	}
}
