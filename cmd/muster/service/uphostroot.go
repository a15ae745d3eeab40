// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/hostroot"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/userns"
)

// clusterName is how clusters are named, as the Cluster's schema says.
var clusterName = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$`)

// allowHostRoot is the command line's list of clusters whose machines may be this host's equals: nil without the flag,
// and not nil with an empty one. A cluster that does not exist yet may be on it.
func (up *upOptions) allowHostRoot() (hostroot.Clusters, error) {
	if !up.hostRootSet {
		return nil, nil
	}
	list := hostroot.Clusters{}
	for _, name := range up.hostRoot {
		if name == "" {
			continue
		}
		if !clusterName.MatchString(name) {
			return nil, fmt.Errorf("--allow-host-root: %q is not the name of a cluster: letters, digits, - and _, a letter or digit first, at most 100", name)
		}
		list = append(list, name)
	}
	return append(hostroot.Clusters{}, hostroot.Of(list...)...), nil
}

// withoutIDs has the machines of a new cluster that nobody described be this host's equals, if the owner allows that
// and the host can make no others.
func withoutIDs(dir statedir.Dir, wanted clusterconfig.Config, allowed hostroot.Clusters) {
	if !allowed.Allow(wanted.Cluster.Spec.Name) || userns.Check(statedir.Nearest(dir)) == nil {
		return
	}
	for _, group := range wanted.NodeGroups {
		if group.Spec.Provider.Can(v1alpha1.RunPods) {
			group.Spec.Isolation = v1alpha1.IsolationNone
		}
	}
}

// tellHostRoot says which clusters may have such machines from now on.
func tellHostRoot(w io.Writer, list hostroot.Clusters) {
	if len(list) == 0 {
		fmt.Fprintln(w, "No cluster may have machines whose root is root on this host any more; those that run go on until they boot next.")
		return
	}
	fmt.Fprintf(w, "Node groups of %s may have isolation none now: root on their machines, and in pods there, is root on this host.\n", strings.Join(list, ", "))
}
