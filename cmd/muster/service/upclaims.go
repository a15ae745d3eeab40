// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"slices"
	"sync"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/stateconversion"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/statedir"
)

// claims adds to a host what the nodes of local machines will claim of it: those that are asked for, and those of
// clusters that are there besides.
func claims(here capacity.Host, dir statedir.Dir, wanted []clusterconfig.Config) capacity.Host {
	all, asked := slices.Clone(wanted), map[string]bool{}
	for _, config := range wanted {
		asked[config.Cluster.Namespace] = true
	}
	clusters, _ := dir.ListClusters() // records that cannot be read claim nothing
	for _, cluster := range clusters {
		if saved, err := clusterconfig.Read(cluster.Record()); err == nil && !asked[cluster.Namespace()] {
			all = append(all, saved)
		}
	}
	for _, config := range all {
		for _, group := range config.NodeGroups {
			if !group.Spec.Provider.Can(v1alpha1.RunPods) {
				continue
			}
			for range group.Spec.ScalingConfig.DesiredSize {
				here.Claim(group.Spec.Type())
			}
		}
	}
	return here
}

// checked tells, once nothing keeps the sessions of `muster up` from it, what the service converts first and what nodes
// will claim of this host. Of machines that are refused nothing is told.
func (up *upOptions) checked(claimed capacity.Host) func(converts stateconversion.Plan) {
	claims := sync.OnceFunc(func() {
		if text := claimed.WillBeOvercommitted(); text != "" {
			fmt.Fprintln(up.Err, text)
		}
		for _, text := range tooFew(claimed.Nodes) {
			fmt.Fprintf(up.Err, "Warning: %s\n", text)
		}
	})
	return func(converts stateconversion.Plan) {
		if text := converts.String(); text != "" {
			fmt.Fprintln(up.Err, text)
		}
		claims()
	}
}

// tooFew says of what a host's kernel allows fewer than local machines may need, a line each. It is nothing if there
// are none.
func tooFew(machines int) []string {
	if machines == 0 {
		return nil
	}
	lines := []string{capacity.FewInotifyInstances(host.InotifyLimit())}
	if bounds, err := local.HostBounds(); err == nil {
		lines = append(lines, capacity.FewOpenFiles(host.FileTable(), bounds.Machines().PIDs))
	}
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}
