// SPDX-License-Identifier: Apache-2.0

package bootstrapsh

import (
	"slices"
	"strings"

	"muster.dev/muster/internal/platform/shellquote"
)

// retired are flags that kubelets of Amazon Linux 2 had and today's do not know: one of them, and the kubelet does not
// start.
func retired() []string {
	return []string{
		"cni-bin-dir", "cni-cache-dir", "cni-conf-dir", "container-runtime", "docker-endpoint", "image-pull-progress-deadline",
		"network-plugin", "network-plugin-mtu", "non-masquerade-cidr", "pod-infra-container-image",
	}
}

// extraArgs takes the kubelet's arguments apart as the shell would have.
func (p *parser) extraArgs(flag, value string) {
	args, err := shellquote.Split(value)
	if err != nil {
		p.fail("%s %v", flag, err)
		return
	}
	for i := 0; i < len(args); i++ {
		long, _ := strings.CutPrefix(args[i], "--")
		name, given, joined := strings.Cut(long, "=")
		if !joined && i+1 < len(args) {
			given = args[i+1]
		}
		if slices.Contains(retired(), name) || name == "cloud-provider" && given == "aws" {
			p.warn("--%s in %s is left out: the kubelet does not know it any more", name, flag)
			if !joined {
				i++
			}
			continue
		}
		p.result.Spec.Kubelet.Flags = append(p.result.Spec.Kubelet.Flags, args[i])
	}
	if flags := p.result.Spec.Kubelet.Flags; len(flags) > 0 {
		p.understood("%s: spec.kubelet.flags %s", flag, strings.Join(flags, " "))
	}
}

// podCount is --use-max-pods false: the kubelet's own limit, unless an argument of the kubelet's says another.
func (p *parser) podCount() {
	said := slices.ContainsFunc(p.result.Spec.Kubelet.Flags, func(arg string) bool {
		name, _, _ := strings.Cut(strings.ReplaceAll(arg, "_", "-"), "=")
		return name == "--max-pods"
	})
	switch {
	case p.given[flagUseMaxPods] != "false":
	case said:
		p.understood("%s false: --max-pods of %s counts", flagUseMaxPods, flagExtraArgs)
	default:
		p.configure("maxPods", int64(110))
		p.understood("%s false: spec.kubelet.config.maxPods 110", flagUseMaxPods)
	}
}
