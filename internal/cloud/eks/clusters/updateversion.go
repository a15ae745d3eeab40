// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"fmt"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/platform/release"
)

type updateClusterVersionInput struct {
	Name, Version, ClientRequestToken string
	Force                             *bool
}

// updateClusterVersion begins an upgrade of the control plane by one minor.
func (a *API) updateClusterVersion() awsfront.Spec[updateClusterVersionInput, change.Output] {
	return awsfront.Spec[updateClusterVersionInput, change.Output]{
		About: func(ctx context.Context, call *awsfront.Call, in *updateClusterVersionInput) ([]awsfront.Target, error) {
			targets, err := a.store.AboutCluster(ctx, call, in.Name)
			if err == nil {
				targets[0].Conditions["eks:kubernetesVersion"] = []string{in.Version}
			}
			return targets, err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *updateClusterVersionInput) (*change.Output, error) {
			return change.Answer(change.Make(ctx, a.store, call, in.Name, in.ClientRequestToken, change.OfCluster(a.store, in.Name), func(p *change.Plan) error {
				if err := checkActive(p.Of); err != nil {
					return err
				}
				p.Type, p.Change.Version = v1alpha1.UpdateVersion, in.Version
				p.Param("Version", in.Version)
				p.Param("PlatformVersion", platformVersion)
				return a.checkUpgrade(ctx, p.Of, in.Version)
			}))
		},
	}
}

// checkUpgrade refuses a version that a cluster cannot be upgraded to.
func (a *API) checkUpgrade(ctx context.Context, of *v1alpha1.Cluster, version string) error {
	refuse := eksfault.Invalid(of.Spec.Name, "")
	is := eksresource.Release(of)
	next, err := release.All().OfMinor(version)
	switch {
	case err != nil:
		return refuse("%s", err)
	case next.Minor() == is.Minor():
		return refuse("Cluster is already at version %s", is.Minor())
	case next.Distance(is) != 1:
		return refuse("Unsupported Kubernetes minor version update from %s to %s: a control plane is upgraded by one minor at a time, and not taken back", is.Minor(), next.Minor())
	}
	if missing := a.Unbuilt(next); missing != "" {
		return refuse("%s", missing)
	}
	var machines v1alpha1.MachineList
	if err := a.store.Management.List(ctx, &machines); err != nil {
		return eksfault.Away(fmt.Errorf("listing the machines of cluster %s: %w", of.Spec.Name, err))
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		if m.Spec.ClusterName != of.Spec.Name {
			continue
		}
		if err := release.CheckSkew(ami.Release(m.Spec.ImageID), next); err != nil {
			return refuse("Kubelet version of instance %s must be updated to match cluster version %s before updating cluster version: %s", m.Name, is.Minor(), err)
		}
	}
	return nil
}
