// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"strings"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cluster/insight"
	"muster.dev/muster/internal/platform/release"
)

type updateClusterVersionInput struct {
	Name, Version, ClientRequestToken string
	Force                             *bool
	RollbackConfig                    *rollbackConfig
}

// rollbackConfig is EKS's: how long nodes of EKS Auto Mode have time to go back before their cluster.
type rollbackConfig struct{ TimeoutMinutes *int32 }

// The bounds of rollbackConfig.timeoutMinutes, and its default.
const (
	rollbackLeast   = 120
	rollbackMost    = 10080
	rollbackDefault = 720
)

// updateClusterVersion begins an upgrade of the control plane by one minor, or takes it back by one.
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
				p.Type, p.Change.Version, p.Change.Force = v1alpha1.UpdateVersion, in.Version, eksresource.Deref(in.Force, false)
				p.Param("Version", in.Version)
				p.Param("PlatformVersion", platformVersion)
				return a.planVersion(ctx, in, p)
			}))
		},
	}
}

// planVersion refuses a version that a cluster cannot be taken to, and fills in what a rollback has.
func (a *API) planVersion(ctx context.Context, in *updateClusterVersionInput, p *change.Plan) error {
	refuse := eksfault.Invalid(in.Name, "")
	is := eksresource.Release(p.Of)
	next, err := release.All().OfMinor(in.Version)
	switch {
	case err != nil:
		return refuse("%s", err)
	case next.Minor() == is.Minor():
		return refuse("Cluster is already at version %s", is.Minor())
	case next.Distance(is) != 1 && next.Distance(is) != -1:
		return refuse("Unsupported Kubernetes minor version update from %s to %s: a control plane is upgraded, and taken back, by one minor at a time", is.Minor(), next.Minor())
	}
	if next.Distance(is) == -1 {
		p.Type, p.Change.RollbackTimeoutMinutes = v1alpha1.UpdateRollback, new(int32(rollbackDefault))
	}
	if config := in.RollbackConfig; config != nil {
		minutes := eksresource.Deref(config.TimeoutMinutes, rollbackDefault)
		switch {
		case p.Type != v1alpha1.UpdateRollback:
			return refuse("rollbackConfig is of a rollback, and %s is newer than %s: leave it out", next.Minor(), is.Minor())
		case minutes < rollbackLeast || minutes > rollbackMost:
			return refuse("rollbackConfig.timeoutMinutes is %d: it must be from %d to %d", minutes, rollbackLeast, rollbackMost)
		}
		p.Change.RollbackTimeoutMinutes = &minutes
	}
	refusal, against, err := a.CheckVersion(ctx, p.Of, next)
	switch {
	case err != nil:
		return eksfault.Away(err)
	case refusal != "":
		return refuse("%s", strings.TrimPrefix(refusal, "spec."))
	case len(against) > 0 && !p.Change.Force:
		return eksfault.New(eksfault.InvalidState, in.Name, "", "Insights are against version %s (M-UPDATE-71): %s. See ListInsights, and pass force to update all the same", next.Minor(), insight.Summary(against))
	}
	return nil
}
