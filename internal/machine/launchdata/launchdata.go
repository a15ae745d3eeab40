// SPDX-License-Identifier: Apache-2.0

package launchdata

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/nodegroupspec"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/userdata"
	"muster.dev/muster/internal/plane/component"
)

// Renderer returns the function that renders a machine's user data: MIME multipart of the launch template's user data,
// and then muster's own NodeConfig, which wins, as EKS does for managed node groups. The token is empty for a machine
// that joins by its role or has joined.
func Renderer(c component.Config) (func(m *v1alpha1.Machine, token string) ([]byte, error), error) {
	ca, err := os.ReadFile(c.Authority("cluster"))
	if err != nil {
		return nil, fmt.Errorf("reading authority of the cluster for user data: %w", err)
	}
	endpoint, err := c.PrivateURL()
	if err != nil {
		return nil, err
	}
	network, pods := c.Cluster.Spec.Network, c.Network.PodCIDR.String()
	if c.Network.PodsInSubnets {
		pods = "" // a machine asks for its own
	}
	return func(m *v1alpha1.Machine, token string) ([]byte, error) {
		spec := nodeconfig.Spec{
			Cluster: nodeconfig.Cluster{
				Name: c.Cluster.Spec.Name, APIServerEndpoint: endpoint, CertificateAuthority: ca,
				CIDR: network.ServiceCIDR, PodCIDR: pods, Domain: network.ClusterDomain,
			},
			Kubelet: nodeconfig.Kubelet{Flags: []string{"--node-labels=" + nodeLabels(m)}},
			Join:    nodeconfig.Join{Token: token, InstanceRole: m.Spec.InstanceProfile != ""},
		}
		spec.Kubelet.Config = kubeletConfig(m)
		if f := m.Spec.Fargate; f != nil && f.Logging != nil {
			spec.Logging = nodeconfig.Logging{Output: f.Logging.Output, Filters: f.Logging.Filters, Parsers: f.Logging.Parsers}
		}
		own, err := nodeconfig.Marshal(spec)
		if err != nil {
			return nil, err
		}
		var parts []userdata.Part
		if template := m.Spec.LaunchTemplate; template != nil {
			if parts, err = userdata.Read([]byte(template.UserData)); err != nil {
				return nil, fmt.Errorf("the launch template's %w", err)
			}
		}
		return bounded(append(parts, userdata.Part{MediaType: nodeconfig.MediaType, Content: own}))
	}, nil
}

// kubeletConfig is what a machine's kubelet is told beside what follows from the cluster; nil if that is nothing.
//
// A machine of Fargate takes its one pod. Of its memory the kubelet has what Fargate adds to what the pod asks for, 256 MiB:
// 100 are kept free by eviction (package render), and the rest is reserved, so that the pod's request always fits.
func kubeletConfig(m *v1alpha1.Machine) map[string]any {
	config := map[string]any{}
	if taints := nodeTaints(m); len(taints) > 0 {
		config["registerWithTaints"] = taints
	}
	if m.Spec.Fargate != nil {
		config["maxPods"] = 1
		config["kubeReserved"] = map[string]any{"cpu": "0", "memory": "156Mi"}
	}
	if len(config) == 0 {
		return nil
	}
	return config
}

// bounded joins parts, and compresses them if they are too long for user data otherwise.
func bounded(parts []userdata.Part) ([]byte, error) {
	raw, err := userdata.Write(parts)
	if err != nil || len(raw) <= machine.MaxUserData {
		return raw, err
	}
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	_, err = writer.Write(raw)
	if err := errors.Join(err, writer.Close()); err != nil {
		return nil, fmt.Errorf("compressing user data: %w", err)
	}
	if compressed.Len() > machine.MaxUserData {
		return nil, fmt.Errorf("user data is %d bytes long, compressed and with muster's own part: at most %d are allowed; shorten the launch template's userData",
			compressed.Len(), machine.MaxUserData)
	}
	return compressed.Bytes(), nil
}

// nodeLabels are the labels that the node registers with, as a value of the kubelet's flag.
func nodeLabels(m *v1alpha1.Machine) string {
	labels := map[string]string{}
	if m.Spec.NodeGroup != "" {
		labels[v1alpha1.LabelNodeGroup] = v1alpha1.NodeGroupSlug(m.Spec.NodeGroup)
	}
	maps.Copy(labels, m.Spec.Labels.Strings())
	maps.Copy(labels, nodegroupspec.ManagedLabels(m, ami.OfMachine(m)))
	pairs := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ",")
}

// nodeTaints are the taints that the node registers with, as a value in the kubelet's configuration.
func nodeTaints(m *v1alpha1.Machine) []any {
	taints := make([]any, 0, len(m.Spec.Taints))
	for _, taint := range m.Spec.Taints {
		entry := map[string]any{"key": taint.Key, "effect": string(taint.Effect)}
		if taint.Value != "" {
			entry["value"] = string(taint.Value)
		}
		taints = append(taints, entry)
	}
	return taints
}
