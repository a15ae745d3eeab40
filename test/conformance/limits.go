// SPDX-License-Identifier: Apache-2.0

package main

import "regexp"

// limits are those of the kind of host that Muster is tried on.
var limits = []limit{
	{
		regexp.MustCompile(`PLR Pod InPlace Resize .* PLR guaranteed qos `),
		"No process of a host without CAP_SYS_RESOURCE gets a lower oom_score_adj, which containers of guaranteed pods are given.",
	},
	{
		regexp.MustCompile(`PLR pod-level burstable pods .* resize policy mem restart resizing .*cpu & mem in opposite directions`),
		"Control groups of version 1 take no CPU quota of a container that is above its pod's, which the kubelet raises later.",
	},
	{
		regexp.MustCompile(`Security Context should support seccomp unconfined on the (container|pod)`),
		"All processes of a machine with ids of its own have the seccomp filter of its first one, which /proc shows of containers that have none.",
	},
	{
		regexp.MustCompile(`PrivilegedPod .* should enable privileged commands`),
		"The kernel has no links of the kind dummy.",
	},
}
