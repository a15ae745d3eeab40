// SPDX-License-Identifier: Apache-2.0

package clustercontroller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/platform/release"
)

// CheckMachines refuses a release of a control plane that the cluster's machines do not fit, and names the node groups and
// machines that keep the cluster from it: those that are too old for it, and those that are newer, which go back first.
func CheckMachines(to release.Release, machines []v1alpha1.Machine, groups []v1alpha1.NodeGroup) error {
	problems := map[string][]string{} // names by what is wrong with them
	of := func(what string, is release.Release) {
		if err := release.CheckSkew(is, to); err != nil {
			problems[err.Error()] = append(problems[err.Error()], what)
		}
	}
	for i := range groups {
		g := &groups[i]
		if is, err := release.All().Of(cmp.Or(g.Spec.Version, g.Status.Version)); err == nil && g.Spec.Version+g.Status.Version != "" {
			of("node group "+g.Spec.Name, is)
		}
	}
	for i := range machines {
		of("machine "+machines[i].Name, ami.Release(machines[i].Spec.ImageID))
	}
	var lines []string
	for problem, names := range problems {
		lines = append(lines, fmt.Sprintf("%s: %s", some(names, func(name string) string { return name }), problem))
	}
	if len(lines) == 0 {
		return nil
	}
	slices.Sort(lines)
	return fmt.Errorf("spec.version: machines keep the cluster from %s: %s; update the node groups first, by UpdateNodegroupVersion or spec.version of a NodeGroup",
		to.Minor(), strings.Join(lines, "; "))
}
