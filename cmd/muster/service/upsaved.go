// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/clusterconfig"
)

// saved returns the configuration of the last start, with --auto applied to it, and --nodes to its default node group. Where the machines
// of that group come from, and whether they simulate pods, stays.
func (up *upOptions) saved() (clusterconfig.Config, error) {
	cluster, err := up.OpenCluster()
	if err != nil {
		return clusterconfig.Config{}, err
	}
	saved, err := clusterconfig.Read(cluster.Record())
	if err != nil {
		return saved, err
	}
	if up.versionSet {
		saved.Cluster.Spec.Version = up.version
	}
	up.compute(saved.Cluster)
	if !up.nodesSet && !up.providerSet && !up.simulatePodsSet {
		return saved, nil
	}
	for _, group := range saved.NodeGroups {
		if group.Spec.Name != clusterconfig.DefaultNodeGroupName {
			continue
		}
		if err := up.applyTo(group); err != nil {
			return saved, err
		}
		return saved, saved.Validate()
	}
	const without = "this cluster was set up without a node group %q: use `muster %s`"
	switch {
	case up.nodesSet:
		return saved, fmt.Errorf("--nodes: "+without, clusterconfig.DefaultNodeGroupName, fmt.Sprintf("scale nodegroup NAME %d", up.nodes))
	case up.providerSet:
		return saved, fmt.Errorf("--provider: "+without, clusterconfig.DefaultNodeGroupName, "create nodegroup NAME --provider "+up.provider)
	}
	return saved, fmt.Errorf("--simulate-pods: "+without, clusterconfig.DefaultNodeGroupName, "create nodegroup NAME --provider simulated --simulate-pods")
}

// compute has Karpenter run in the control plane of a cluster, or no longer, if --auto says so.
func (up *upOptions) compute(cluster *v1alpha1.Cluster) {
	if !up.autoSet || up.auto == cluster.Spec.Compute.On() {
		return
	}
	wanted := v1alpha1.ClusterCompute{Enabled: up.auto}
	if cluster.Spec.Compute != nil {
		wanted.NodeRole = cluster.Spec.Compute.NodeRole
	}
	if up.auto {
		wanted.NodePools = v1alpha1.NodePoolNames()
	}
	cluster.Spec.Compute = &wanted
}

// applyTo changes the default node group as the flags say, or refuses what cannot be changed.
func (up *upOptions) applyTo(group *v1alpha1.NodeGroup) error {
	if up.providerSet && group.Spec.Provider != v1alpha1.Provider(up.provider) {
		return fmt.Errorf("--provider: the machines of node group %s are %s ones, and stay so: `muster create nodegroup NAME --provider %s` makes others",
			group.Spec.Name, group.Spec.Provider, up.provider)
	}
	if up.simulatePodsSet && group.Spec.SimulatePods != up.simulatePods {
		return fmt.Errorf("--simulate-pods: node group %s has simulatePods %t: `muster create nodegroup NAME --provider simulated --simulate-pods=%t` makes other machines",
			group.Spec.Name, group.Spec.SimulatePods, up.simulatePods)
	}
	if up.nodesSet {
		size := &group.Spec.ScalingConfig
		if up.nodes > size.MaxSize {
			return fmt.Errorf("--nodes: %w", &clusterconfig.MaxSizeError{Group: group.Spec.Name, Most: size.MaxSize, Desired: up.nodes})
		}
		size.DesiredSize = up.nodes
	}
	return nil
}
