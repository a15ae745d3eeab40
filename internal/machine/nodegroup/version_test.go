// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/release/releasetest"
)

// New machines of a group are of the minor that it asks for, else of the one that they had; the cluster's counts for a
// group that is new.
func TestVersionOfMachines(t *testing.T) {
	t.Parallel()
	list := releasetest.List()
	of := func(minor string) release.Release {
		found, err := list.OfMinor(minor)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	unbuilt := func(r release.Release) string {
		if r.Minor() == "1.35" {
			return "1.35 is not built here"
		}
		return ""
	}
	for name, c := range map[string]struct {
		spec, status, plane string
		machines            []string // their images
		want, says          string
	}{
		"a new group":                     {plane: "1.37", want: "1.37"},
		"a group that asks":               {spec: "1.34", plane: "1.37", want: "1.34"},
		"after an upgrade of the cluster": {status: "1.36", plane: "1.37", want: "1.36"},
		"a change":                        {spec: "1.37", status: "1.36", plane: "1.37", want: "1.37"},
		"back":                            {spec: "1.36", status: "1.37", plane: "1.37", want: "1.36"},
		"of before, with machines":        {machines: []string{""}, plane: "1.37", want: "1.36"},
		"its status was lost":             {machines: []string{ami.OfRelease(of("1.34"))}, plane: "1.36", want: "1.34"},
		"newer than the cluster":          {spec: "1.37", status: "1.36", plane: "1.36", want: "1.36", says: "spec.version: machines of 1.37 would be newer than their cluster, which runs 1.36"},
		"too old":                         {spec: "1.34", plane: "1.99", says: "spec.version: machines of 1.34 would be 65 minors older than their cluster, which runs 1.99; they may be 3"},
		"none of that name":               {spec: "1.33", plane: "1.36", says: `spec.version: unsupported Kubernetes version "1.33": there is 1.34, `},
		"not built":                       {spec: "1.35", plane: "1.36", says: "spec.version: 1.35 is not built here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &groups{parts: parts{Config: Config{Release: releasetest.Next(), Releases: list, Unbuilt: unbuilt}}}
			group := &v1alpha1.NodeGroup{Spec: v1alpha1.NodeGroupSpec{Version: c.spec}, Status: v1alpha1.NodeGroupStatus{Version: c.status}}
			var machines []v1alpha1.Machine
			for _, image := range c.machines {
				machines = append(machines, v1alpha1.Machine{Spec: v1alpha1.MachineSpec{ImageID: image}})
			}
			err := r.version(group, machines, &v1alpha1.Cluster{Status: v1alpha1.ClusterStatus{Version: of(c.plane).Version}})
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.HasPrefix(err.Error(), c.says)) || group.Status.Version != c.want {
				t.Errorf("%q, %v", group.Status.Version, err)
			}
			if c.says != "" {
				return
			}
			if got := imageOf(r.Config, group); got != ami.OfRelease(of(c.want)) {
				t.Errorf("new machines have the image %s", got)
			}
		})
	}
}
