// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/hostroot"
	"muster.dev/muster/internal/machine/launchdata"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/programs"
	"muster.dev/muster/internal/platform/release"
)

// OfCluster is the configuration for a cluster of this host, as far as it follows from how the cluster is run. The
// store has the account's instances.
func OfCluster(c component.Config, providers machine.Providers, store *machine.Store) (Config, error) {
	userData, err := launchdata.Renderer(c)
	if err != nil {
		return Config{}, err
	}
	routes, err := routesOf(c, providers)
	if err != nil {
		return Config{}, err
	}
	audits := make([]string, component.APIServers)
	for slot := range audits {
		audits[slot] = c.Dir.Audit(slot)
	}
	return Config{
		ClusterName: c.Cluster.Spec.Name, Release: c.Release, Releases: release.All(),
		Unbuilt:   func(of release.Release) string { return programs.Unbuilt(c.BinDir, of) },
		Providers: providers,
		Routes:    routes,
		Network:   c.Network,
		Usage:     func() ([]machine.Usage, error) { return store.Usage(c.Network.VPCID) },
		UserData:  userData,
		HostRoot:  func() (hostroot.Clusters, error) { return hostroot.Read(c.State) },
		AuditLogs: audits,
	}, nil
}

// routesOf are the routes to machines of the providers whose machines run pods.
func routesOf(c component.Config, providers machine.Providers) (map[v1alpha1.Provider]Routes, error) {
	routes := map[v1alpha1.Provider]Routes{}
	if !c.VPC {
		return routes, nil
	}
	opened, err := networkrecord.OpenRoutes(c)
	if err != nil {
		return nil, err
	}
	for name := range providers {
		if name.Can(v1alpha1.RunPods) {
			routes[name] = opened
		}
	}
	return routes, nil
}
