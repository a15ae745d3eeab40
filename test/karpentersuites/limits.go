// SPDX-License-Identifier: Apache-2.0

package main

import "regexp"

// limit is what keeps specs from being about Muster.
type limit struct {
	suite, spec *regexp.Regexp
	why         string
}

func of(suite, spec, why string) limit {
	return limit{regexp.MustCompile("^(?:" + suite + ")$"), regexp.MustCompile(spec), why}
}

// limits are the reasons for which specs are not run, the first that fits. A spec that none fits is run, and counts as passed
// or failed.
func limits() []limit {
	return []limit{
		of("provider-ipv6", "", "clusters have IPv4 addresses alone"),
		of("provider-localzone", "", "there are no local zones"),
		of("provider-legacyrepair", "", "Karpenter runs without settings.legacyNodeRepair, which the other suites are not run with"),
		of("provider-scale|core-performance", "", "it asks for hundreds of machines, and a host is finite"),
		of("core-regression", "^Performance|Runaway Scale-Up|one pod per node", "it asks for hundreds of machines, and a host is finite"),
		of("core-dra", "", "it is about the provider KWOK"),
		of(".*", `(?i)reserved (capacity|offering)|reservation|capacity resverations`, "there are no capacity reservations"),
		of("provider-integration|provider-scheduling-.*", `(?i)nvidia|neuron|inferentia|amd\.com|habana|\befas?\b|gpu`, "there are no accelerators, and no EFA"),
		of(".*", "hugepages", "machines have no huge pages"),
		of(".*", `Bottlerocket|\bAL2\b|Windows|windows-build`, "images are those of Amazon Linux 2023"),
		of(".*", "pod-eni", "security groups for pods are the VPC CNI's"),
		of("provider-storage", "Persistent Volumes|Stateful workloads", "there are no EBS volumes"),
		of(".*", "instance-store", "machines have no instance stores"),
		of(".*", "ConnectionTracking", "network interfaces have no settings of connection tracking"),
		of(".*", "Nitro Enclaves", "there are no enclaves"),
		of(".*", "resource based naming", "machines have names by their addresses alone"),
		of("provider-integration", "^MetadataOptions", "the metadata service has IPv4 addresses alone"),
		of("provider-integration", "AssociatePublicIPAddress set true", "machines have no public addresses"),
		of("provider-drift", "drifted due to AMIs$", "it launches machines of the minor before the cluster's, which make build does not make"),
		of("provider-drift", "no longer matches the existing NodeClaims instance type", "there are no machines of arm64"),
		of("provider-drift", "EC2NodeClass AMIFamily$", "images are those of Amazon Linux 2023"),
		of("provider-integration", "tag all associated resources", "there are no EBS volumes"),
		of("provider-integration", "tag spot instance requests", "requests of spot instances are not kept"),
		of("provider-interruption", "instance status failure", "it has the kernel panic, which is the host's"),
		of("provider-scheduling-.*", "placement group|partitions", "there are no placement groups"),
		of("provider-scheduling-.*", "nested virtualization", "machines have no nested virtualization"),
		of("provider-scheduling-.*", "deprecated labels", "nodes have no label of the EBS CSI driver"),
		of("provider-scheduling-.*", "InitContainers", "it runs the image alpine, which nothing here makes"),
		of("provider-scheduling-.*", "encryption in transit", "no type encrypts what machines send each other"),
		of("provider-scheduling-.*", "local NVME storage", "machines have no instance stores"),
		of("provider-scheduling-.*", "capacity tenancy", "there are no dedicated hosts"),
		of("provider-scheduling-.*", "flex node", "there are no flex types"),
		of("provider-(scheduling-.*|consolidation)", "Node Overlay should (provision the|consolidate a) instance", "it asks for a type of 32 processors, and none has more than 16"),
		of("provider-consolidation", "pods go terminal", "it runs the image alpine, which nothing here makes"),
		of("core-disruption", "pre-stop hook|drain pods on a node in order", "it runs the image alpine, which nothing here makes"),
	}
}

// whyNot returns why a spec of a suite is not run; "" if it is.
func whyNot(all []limit, suite, spec string) string {
	for _, l := range all {
		if l.suite.MatchString(suite) && l.spec.MatchString(spec) {
			return l.why
		}
	}
	return ""
}

// need is how many GiB the machines of specs have at once. It is not a limit: a host that offers them runs the specs.
type need struct {
	suite, spec *regexp.Regexp
	gib         int
}

func asks(suite, spec string, gib int) need {
	l := of(suite, spec, "")
	return need{l.suite, l.spec, gib}
}

// needs are those that a host of 24 GiB has not. The smallest machines that the suites' node pools allow have 4 GiB.
func needs() []need {
	return []need{
		asks("provider-consolidation", `should consolidate nodes \(delete\)`, 272),          // 100 pods of a processor, three a machine of 8 GiB
		asks("provider-consolidation", `should consolidate nodes \(replace\)`, 52),          // three of 16 GiB, and the first replacement
		asks("provider-consolidation", "budgets for non-empty delete", 48),                  // three of 16 GiB
		asks("provider-consolidation", "budgets for non-empty replace", 104),                // five of 16 GiB, and three replacements of 8
		asks("core-disruption", "Repair (repairs|resumes repair|force-terminates)", 24),     // five, and a replacement
		asks("core-disruption", "reboot more nodes at once than the disruption budget", 40), // ten
		asks("core-disruption", "budgets for non-empty replace drift", 32),                  // five, and three replacements
		asks("core-regression", "static NodeClaims to meet desired replicas", 60),           // 15
		asks("core-regression", "StaticCapacity Drift", 44),                                 // ten, and a replacement
	}
}

// memory returns how many GiB the machines of a spec have at once; 0 if it does not matter.
func memory(suite, spec string) int {
	for _, n := range needs() {
		if n.suite.MatchString(suite) && n.spec.MatchString(spec) {
			return n.gib
		}
	}
	return 0
}
