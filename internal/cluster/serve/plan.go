// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/clusterconfig"
	"muster.dev/muster/internal/cluster/component"
	"muster.dev/muster/internal/platform/statedir"
)

// Plan returns the processes of the account and of one cluster that would run, and changes nothing. Ports that would be chosen are shown as 0.
func Plan(dir statedir.Dir, wanted clusterconfig.Config) ([]component.Spec, error) {
	binDir, err := FindPrograms()
	if err != nil {
		return nil, err
	}
	account := component.Account{State: dir, BinDir: binDir, VPC: localMachinesPossible(), VPCCIDR: wanted.Cluster.Spec.Network.VPCCIDR}
	if err := readPorts(dir.Ports(), &account.Ports); err != nil {
		return nil, err
	}
	c := component.Config{Account: account, Dir: dir.Cluster(v1alpha1.ClusterSlug(wanted.Cluster.Spec.Name)), Cluster: *wanted.Cluster}
	if err := readPorts(c.Dir.Ports(), &c.Ports); err != nil {
		return nil, err
	}
	if port := wanted.Cluster.Spec.APIServer.Port; port != 0 {
		c.Ports.APIServer = int(port)
	}
	specs, err := component.AccountSpecs(account)
	if err != nil {
		return nil, err
	}
	own, err := component.Specs(c)
	return append(specs, own...), err
}
