// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"cmp"
	"errors"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/platform/release"
)

// reasonVersion is the reason of a group whose machines cannot be of the version that it asks for.
const reasonVersion = "UnsupportedVersion"

// versionAgain is how often such a group looks whether its cluster has been upgraded.
const versionAgain = 2 * time.Second

// version sets in the status of a group which minor new machines have: the one that the spec asks for, else the one that
// they had before. A group that never said has its machines', and the cluster's if there are none. The cluster's is the one
// that its API server says, which an upgrade may not have come to.
func (r *groups) version(group *v1alpha1.NodeGroup, machines []v1alpha1.Machine, cluster *v1alpha1.Cluster) error {
	plane, err := r.Releases.OfMinor(release.Minor(cluster.Status.Version))
	if err != nil {
		plane = r.Release
	}
	wanted := cmp.Or(group.Spec.Version, group.Status.Version)
	if wanted == "" && len(machines) > 0 {
		wanted = ami.Release(machines[0].Spec.ImageID).Minor()
	}
	of, err := r.Releases.Of(cmp.Or(wanted, plane.Minor()))
	if err == nil {
		err = release.CheckSkew(of, plane)
	}
	if err == nil && r.Unbuilt != nil {
		if missing := r.Unbuilt(of); missing != "" {
			err = errors.New(missing)
		}
	}
	if err != nil {
		return &problem{reason: reasonVersion, message: "spec.version: " + err.Error(), again: versionAgain}
	}
	group.Status.Version = of.Minor()
	return nil
}

// imageOf is the image that new machines of a group are launched from.
func imageOf(config Config, group *v1alpha1.NodeGroup) string {
	of, err := config.Releases.Of(cmp.Or(group.Status.Version, config.Release.Minor()))
	if err != nil {
		of = config.Release // the group has a problem, and gets no machines
	}
	return ami.OfRelease(of)
}
