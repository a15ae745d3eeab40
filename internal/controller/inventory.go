// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"muster.dev/muster/internal/facts"
	"muster.dev/muster/internal/policyfile"
)

// inventory combines the sources of the policy file.
func (a *assembled) inventory(ctx context.Context, cluster *rest.Config, changed func(facts.Change)) (*facts.Combined, error) {
	var sources []facts.Source
	for n, s := range a.config.Policy.Inventory.Sources {
		source, err := a.source(ctx, s, cluster, changed)
		if err != nil {
			return nil, fmt.Errorf("inventory.sources[%d]: %w", n, err)
		}
		sources = append(sources, source)
	}
	return facts.Combine(facts.Mode(a.config.Policy.Inventory.Combine), sources...)
}

func (a *assembled) source(_ context.Context, s policyfile.Source, _ *rest.Config, changed func(facts.Change)) (facts.Source, error) {
	logger := a.config.Logger
	switch {
	case s.Machines != nil:
		config, err := connection(s.Machines.Kubeconfig)
		if err != nil {
			return nil, err
		}
		objects, err := facts.Machines(config)
		if err != nil {
			return nil, err
		}
		return facts.NewMachines(facts.WatchConfig{Objects: objects, ClusterName: s.Machines.ClusterName, OnChange: changed, Logger: logger})
	case s.Static != nil && s.Static.ConfigMap != nil:
		return facts.NewStaticConfigMap(facts.StaticConfigMapConfig{
			Client: a.client, Namespace: s.Static.ConfigMap.Namespace, ConfigMap: s.Static.ConfigMap.Name, OnChange: changed, Logger: logger,
		})
	case s.Static != nil:
		return facts.NewStaticFile(facts.StaticFileConfig{File: s.Static.File, OnChange: changed, Logger: logger})
	case s.NodeStatus != nil:
		return facts.NewNodeStatus(facts.WatchConfig{Objects: facts.NodeStatuses(a.client), OnChange: changed, Logger: logger})
	default:
		return nil, fmt.Errorf("no source is named")
	}
}
