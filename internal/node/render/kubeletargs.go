// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/internal/node/nodeconfig"
)

// KubeletArgs are the kubelet's arguments, the user's last, so that they win. With bootstrap it may ask for a
// certificate by its token. There is no --cloud-provider=external as on EKS: nothing would ever take away the taint
// that comes with it.
func KubeletArgs(spec nodeconfig.Spec, instance Instance, layout Layout, bootstrap bool) []string {
	args := []string{
		"--cert-dir=" + pathKubeletPKI,
		"--config=" + pathKubeletConfig,
		"--hostname-override=" + NodeName(spec, instance),
		"--kubeconfig=" + PathKubeconfig,
	}
	if address := NodeIP(spec, instance); address.IsValid() {
		args = append(args, "--node-ip="+address.String())
	}
	if labels := instance.Labels(); len(labels) > 0 {
		args = append(args, "--"+flagNodeLabels+"="+joinLabels(labels)) // the user's are added to these, and win
	}
	if bootstrap {
		args = append(args, "--bootstrap-kubeconfig="+PathBootstrapKubeconfig)
	}
	if len(kubeletDropIns(spec, instance)) > 0 {
		args = append(args, "--config-dir="+pathKubeletDropIns)
	}
	if layout.Systemd && !layout.ExistingContainerd {
		args = append(args, "--runtime-cgroups=/runtime.slice/containerd.service")
	}
	args = append(args, credentialProviderArgs(layout)...)
	slices.Sort(args)
	return append(args, spec.Kubelet.Flags...)
}

// joinLabels writes labels as the kubelet's flag takes them.
func joinLabels(labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ",")
}

// MaxPods is how many pods the node really takes: by the user's flag, or else the user's configuration, or else the
// formula. EKS reserves for what the formula says even then.
func MaxPods(spec nodeconfig.Spec, instance Instance) (int32, error) {
	if text, ok := lastFlag(spec.Kubelet.Flags, flagMaxPods); ok {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return 0, fmt.Errorf("spec.kubelet.flags: --max-pods: %w", err)
		}
		return int32(n), nil
	}
	if pods, ok := spec.Kubelet.MaxPods(); ok {
		return pods, nil
	}
	pods, _, err := nodeconfig.MaxPods(instance.Type, spec.Kubelet.MaxPodsExpression)
	return pods, err
}
