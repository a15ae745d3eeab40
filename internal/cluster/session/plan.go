// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/machine/machine/simulated"
	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/platform/programs"
	"muster.dev/muster/internal/platform/statedir"
)

// Plan returns the processes of the account and of one cluster that would run, and changes nothing. Ports that would be
// chosen are shown as 0. An empty region stands for the account's, or for the default where there is none yet.
func Plan(dir statedir.Dir, region string, wanted clusterconfig.Config) ([]component.Spec, error) {
	binDir, err := programs.Find(local.Possible())
	if err != nil {
		return nil, err
	}
	own, err := account.Plan(dir, region)
	if err != nil {
		return nil, err
	}
	var accountPorts portplan.AccountPorts
	if err := portplan.Read(dir.Ports(), &accountPorts); err != nil {
		return nil, err
	}
	shared := component.Account{State: dir, BinDir: binDir, Region: own.Region, Places: accountPorts.Places(), VPC: local.Possible()}
	release, err := clusterconfig.ReleaseOf(wanted.Cluster.Spec.Version)
	if err != nil {
		return nil, err
	}
	c := component.Config{Release: release, Account: shared, Dir: dir.Cluster(v1alpha1.ClusterSlug(wanted.Cluster.Spec.Name)), Cluster: *wanted.Cluster, Simulates: !shared.VPC || simulated.Asked(wanted.NodeGroups), Karpenter: shared.VPC && wanted.Cluster.Spec.Compute.On()}
	var ports portplan.Ports
	if err := portplan.Read(c.Dir.Ports(), &ports); err != nil {
		return nil, err
	}
	ports.Published = cmp.Or(int(wanted.Cluster.Spec.APIServer.Port), ports.Published)
	c.Places = ports.Places()
	if c.Issuer, err = issuer.Planned(c.Dir); err != nil {
		return nil, err
	}
	if c.Network, c.VPCs, err = networkrecord.Plan(dir, c); err != nil {
		return nil, err
	}
	hosted, err := component.Specs(c)
	return slices.Concat(component.ManagementSpecs(c.Account), component.AccountSpecs(c.Account), hosted), err
}
