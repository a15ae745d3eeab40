// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/componentconfig"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/plane/nodeports"
)

// components changes settings of the control plane.
func (in *updateClusterConfigInput) components(p *change.Plan, refuse eksfault.Refuse) error {
	settings, wrong := in.Read()
	if len(wrong) > 0 {
		return refuse("%s", componentconfig.Wrong(wrong))
	}
	after := *p.Of.Spec.DeepCopy()
	settings.Change(&after)
	if equality.Semantic.DeepEqual(componentconfig.Show(p.Of.Spec), componentconfig.Show(after)) {
		return refuse("No changes needed for the control plane component config provided")
	}
	p.Type, p.Change.Components = v1alpha1.UpdateComponentConfig, &settings
	params, err := in.Params()
	for _, of := range params {
		p.Param(of.Type, of.Value)
	}
	return err
}

// checkNodePorts refuses a range of ports that Services of the cluster have others than.
func (a *API) checkNodePorts(ctx context.Context, p *change.Plan) error {
	settings := p.Change.Components
	if settings == nil || settings.APIServer == nil || settings.APIServer.ServiceNodePortRange == nil {
		return nil
	}
	cluster, err := a.Cluster(p.Of.Namespace)
	if err != nil {
		return eksfault.Away(err)
	}
	says, err := nodeports.Refusal(ctx, cluster, *settings.APIServer.ServiceNodePortRange)
	if err != nil {
		return eksfault.Away(err)
	}
	if says != "" {
		return eksfault.New(eksfault.InvalidRequest, p.Of.Spec.Name, "", "kubeApiServerConfig.serviceNodePortRange: %s", says)
	}
	return nil
}
