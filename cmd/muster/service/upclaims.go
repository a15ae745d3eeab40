// SPDX-License-Identifier: Apache-2.0

package service

import (
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/capacity"
	"muster.dev/muster/internal/cluster/clusterconfig"
	"muster.dev/muster/internal/platform/statedir"
)

// claims adds to a host what the nodes of local machines will claim of it: those that are asked for, and those of clusters that are there besides.
func claims(host capacity.Host, dir statedir.Dir, wanted []clusterconfig.Config) capacity.Host {
	all, asked := slices.Clone(wanted), map[string]bool{}
	for _, config := range wanted {
		asked[config.Cluster.Namespace] = true
	}
	clusters, _ := dir.ListClusters() // what cannot be read claims nothing
	for _, cluster := range clusters {
		if saved, err := clusterconfig.Read(cluster.Record()); err == nil && !asked[cluster.Namespace()] {
			all = append(all, saved)
		}
	}
	for _, config := range all {
		for _, group := range config.NodeGroups {
			if group.Spec.Provider != v1alpha1.ProviderLocal {
				continue
			}
			for range group.Spec.ScalingConfig.DesiredSize {
				host.Claim(group.Spec.Type())
			}
		}
	}
	return host
}
