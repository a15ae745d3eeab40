// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"muster.dev/muster/internal/certificates/csrcontroller"
	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/facts/ec2instances"
	"muster.dev/muster/internal/certificates/policyconfig"
)

// inventory combines the sources of the policy file.
func (a *assembled) inventory(ctx context.Context, cluster *rest.Config, changed func(facts.Change)) (*facts.Combined, error) {
	var sources []facts.Source
	if len(a.config.Policy.Inventory.Sources) == 0 {
		sources = append(sources, facts.Nothing{})
	}
	seen := map[string]int{}
	for n, s := range a.config.Policy.Inventory.Sources {
		// The name is in the register beside the ID of each machine, so the first of a kind keeps the plain one.
		name := s.Kind()
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, seen[name])
		}
		source, err := a.source(ctx, name, s, cluster, changed)
		if err != nil {
			return nil, fmt.Errorf("inventory.sources[%d]: %w", n, err)
		}
		sources = append(sources, source)
	}
	return facts.Combine(facts.Mode(a.config.Policy.Inventory.Combine), sources...)
}

// serving asks kubelets for the certificates that they serve with, if the policy lets those vouch.
func (a *assembled) serving(changed func(facts.Change)) (csrcontroller.Serving, error) {
	renewal := a.config.Policy.Rules.ServingRenewal
	if renewal == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	s, err := facts.NewServing(facts.ServingConfig{Authorities: renewal.Authorities, Port: renewal.Port, OnChange: changed, Logger: a.config.Logger})
	if err != nil {
		return nil, fmt.Errorf("policy.servingRenewal: %w", err)
	}
	a.leading = append(a.leading, s.Run)
	return s, nil
}

func (a *assembled) source(ctx context.Context, name string, s policyconfig.Source, cluster *rest.Config, changed func(facts.Change)) (facts.Source, error) {
	logger, own := a.config.Logger, func(ctx context.Context) error { return isThere(ctx, a.client.Discovery().RESTClient()) }
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
		there, err := answers(config)
		if err != nil {
			return nil, err
		}
		machines, err := facts.NewMachines(facts.WatchConfig{
			Name: name, Objects: objects, Answers: there, ClusterName: s.Machines.ClusterName, OnChange: changed, Logger: logger,
		})
		if err != nil {
			return nil, err
		}
		a.machines[name] = machines
		return machines, nil
	case s.Static != nil && s.Static.ConfigMap != nil:
		return facts.NewStaticConfigMap(facts.StaticConfigMapConfig{
			Name: name, Client: a.client, Namespace: s.Static.ConfigMap.Namespace, ConfigMap: s.Static.ConfigMap.Name, Answers: own, OnChange: changed, Logger: logger,
		})
	case s.Static != nil:
		return facts.NewStaticFile(facts.StaticFileConfig{Name: name, File: s.Static.File, OnChange: changed, Logger: logger})
	case s.DNS != nil:
		return facts.NewDNS(facts.DNSConfig{
			Name: name, Resolvers: s.DNS.Resolvers, Domain: s.DNS.Domain, Timeout: s.DNS.Wait(), OnChange: changed, Logger: logger,
		})
	case s.ClusterAPI != nil:
		config := cluster
		if s.ClusterAPI.Kubeconfig != "" {
			var err error
			if config, err = connection(s.ClusterAPI.Kubeconfig); err != nil {
				return nil, err
			}
		}
		objects, err := facts.ClusterAPIMachines(config, s.ClusterAPI.Namespace)
		if err != nil {
			return nil, err
		}
		there, err := answers(config)
		if err != nil {
			return nil, err
		}
		return facts.NewClusterAPI(facts.WatchConfig{Name: name, Objects: objects, Answers: there, ClusterName: s.ClusterAPI.ClusterName, OnChange: changed, Logger: logger})
	case s.EC2 != nil:
		return ec2instances.New(ctx, ec2instances.Config{
			Name: name, Region: s.EC2.Region, Endpoint: s.EC2.Endpoint, Filters: s.EC2.Filters, NodeNames: ec2instances.NodeNames(s.EC2.NodeNames),
			GroupTag: s.EC2.GroupTag, OnChange: changed, Logger: logger,
		})
	case s.NodeStatus != nil:
		return facts.NewNodeStatus(facts.WatchConfig{Name: name, Objects: facts.NodeStatuses(a.client), Answers: own, OnChange: changed, Logger: logger})
	default:
		return nil, fmt.Errorf("no source is named")
	}
}
