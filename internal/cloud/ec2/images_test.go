// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/cloud/ec2/offering"
	"muster.dev/muster/internal/machine/instancetype"
	"muster.dev/muster/internal/platform/release"
)

func TestDescribeImages(t *testing.T) {
	w := newWorld(t)
	newest := ami.All()[len(ami.All())-1]
	w.ask("DescribeImages&Owner.1=amazon&Filter.1.Name=name&Filter.1.Value.1=amazon-eks-node-al2023-x86_64-standard-"+newest.Kubernetes+"-v*", 200,
		"<imageId>"+newest.ID+"</imageId>", "<imageState>available</imageState>", "<imageOwnerId>602401143452</imageOwnerId>", "<rootDeviceName>/dev/xvda</rootDeviceName>",
		"<volumeSize>20</volumeSize>", "<isPublic>true</isPublic>", "<creationDate>20", "<platformDetails>Linux/UNIX</platformDetails>", "<architecture>x86_64</architecture>")
	w.ask("DescribeImages&ImageId.1="+newest.ID, 200, newest.Name)
	const earlier = "ami-fb5f1b62ce26eafef" // of v1.36.3, which templates may name
	if text := w.ask("DescribeImages&ImageId.1="+earlier+"&ImageId.2="+earlier, 200, "Kubernetes "+release.Default().Patch()); strings.Count(text, "<imageId>"+earlier+"</imageId>") != 1 || !strings.Contains(text, "<deprecationTime>20") {
		t.Error(text)
	}
	if text := w.ask("DescribeImages", 200); strings.Contains(text, earlier) || strings.Count(text, "<imageId>") != len(release.All()) || strings.Contains(text, "deprecationTime") {
		t.Error(text)
	}
	// Karpenter looks for the image that it knows by a filter, and asks by that whether the image is deprecated.
	if text := w.ask("DescribeImages&IncludeDeprecated=true&Filter.1.Name=image-id&Filter.1.Value.1="+earlier, 200, "<imageId>"+earlier+"</imageId>", "<deprecationTime>20"); strings.Count(text, "<imageId>") != 1 {
		t.Error(text)
	}
	for _, request := range []string{"DescribeImages&Owner.1=self", "DescribeImages&Filter.1.Name=architecture&Filter.1.Value.1=arm64", "DescribeImages&ExecutableBy.1=self", "DescribeImages&Filter.1.Name=platform&Filter.1.Value.1=windows"} {
		if text := w.ask(request, 200); strings.Contains(text, "ami-") {
			t.Errorf("%s: %s", request, text)
		}
	}
	w.ask("DescribeImages&ImageId.1=ami-0123456789abcdef0", 400, "InvalidAMIID.NotFound")
	w.ask("DescribeImages&ImageId.1=x", 400, "InvalidAMIID.Malformed")
	w.ask("DescribeImages&DryRun=true", 412, "DryRunOperation")
	w.gate.Denies = true
	w.ask("DescribeImages", 403, "UnauthorizedOperation")
}

func TestDescribeInstanceTypes(t *testing.T) {
	w := newWorld(t)
	w.ask("DescribeInstanceTypes&InstanceType.1=m5.large", 200, "<instanceType>m5.large</instanceType>", "<defaultVCpus>2</defaultVCpus>", "<sizeInMiB>8192</sizeInMiB>",
		"<maximumNetworkInterfaces>3</maximumNetworkInterfaces>", "<ipv4AddressesPerInterface>10</ipv4AddressesPerInterface>", "<item>x86_64</item>", "<hypervisor>nitro</hypervisor>",
		"<bareMetal>false</bareMetal>", "<enaSupport>required</enaSupport>", "<currentGeneration>", "<placementGroupInfo>", "<sustainedClockSpeedInGhz>3.1</sustainedClockSpeedInGhz>",
		"<ebsOptimizedInfo><baselineBandwidthInMbps>650</baselineBandwidthInMbps><baselineIops>3600</baselineIops><baselineThroughputInMBps>81.25</baselineThroughputInMBps>",
		"<maximumBandwidthInMbps>4750</maximumBandwidthInMbps>", "<maximumIops>18750</maximumIops>", "<maximumThroughputInMBps>593.75</maximumThroughputInMBps>")
	w.ask("DescribeInstanceTypes&InstanceType.1=m5.large&InstanceType.2=x9.huge", 400, "InvalidInstanceType", "The following supplied instance types do not exist: [x9.huge]")
	if text := w.ask("DescribeInstanceTypes", 200); strings.Count(text, "<instanceType>") != len(instancetype.All()) {
		t.Errorf("not all: %s", text)
	}
	noun := offering.InstanceTypeNoun()
	for _, name := range noun.Fields.Rules().Names { // each filter has a value of each type
		for _, kind := range instancetype.All() {
			shown := offering.ShowInstanceType(kind)
			if values := noun.Under(&shown, name); len(values) != map[bool]int{false: 1, true: 2}[name == "supported-usage-class"] || values[0] == "" {
				t.Errorf("%s of %s is %q", name, kind.Name, values)
			}
		}
	}
	text := w.ask("DescribeInstanceTypes&Filter.1.Name=instance-type&Filter.1.Value.1=t3.*&Filter.2.Name=vcpu-info.default-vcpus&Filter.2.Value.1=2&Filter.3.Name=processor-info.supported-architecture&Filter.3.Value.1=x86_64", 200, "t3.small", "t3.large")
	if strings.Contains(text, "t3.xlarge") || strings.Contains(text, "t3a.") {
		t.Errorf("the filters let through %s", text)
	}
	page := w.ask("DescribeInstanceTypes&MaxResults=5", 200, "<nextToken>")
	if strings.Count(page, "<instanceType>") != 5 {
		t.Errorf("a page is %s", page)
	}
	w.ask("DescribeInstanceTypes&MaxResults=5&NextToken="+between(page, "<nextToken>", "</nextToken>"), 200)
	w.ask("DescribeInstanceTypes&DryRun=true", 412, "DryRunOperation") // Karpenter's first question
	w.ask("DescribeInstanceTypeOfferings", 200, "<location>eu-west-1</location>", "<locationType>region</locationType>")
	w.ask("DescribeInstanceTypeOfferings&LocationType=availability-zone&Filter.1.Name=instance-type&Filter.1.Value.1=t3.small", 200, "<location>eu-west-1a</location>", "<location>eu-west-1c</location>")
	w.ask("DescribeInstanceTypeOfferings&LocationType=availability-zone-id&Filter.1.Name=location&Filter.1.Value.1=euw1-az3", 200, "<location>euw1-az3</location>")
	w.ask("DescribeInstanceTypeOfferings&LocationType=outpost", 400, "InvalidParameterValue")
	w.gate.Denies = true
	w.ask("DescribeInstanceTypes", 403, "UnauthorizedOperation")
	w.ask("DescribeInstanceTypeOfferings", 403, "UnauthorizedOperation")
}
