// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/machine/nodegroupspec"
)

type updateNodegroupConfigInput struct {
	Named

	ClientRequestToken string
	ScalingConfig      *scaling
	Labels             *labelsChange
	Taints             *taintsChange
	UpdateConfig       *updateConfig
	NodeRepairConfig   *nodeRepairConfig
	WarmPoolConfig     *warmPoolConfig
}

type labelsChange struct {
	AddOrUpdateLabels map[string]string
	RemoveLabels      []string
}

type taintsChange struct{ AddOrUpdateTaints, RemoveTaints []taint }

func (a *API) updateNodegroupConfig() awsfront.Spec[updateNodegroupConfigInput, change.Output] {
	return awsfront.Spec[updateNodegroupConfigInput, change.Output]{
		About: func(ctx context.Context, call *awsfront.Call, in *updateNodegroupConfigInput) ([]awsfront.Target, error) {
			return a.About(ctx, call, &in.Named)
		},
		Do: a.doUpdateNodegroupConfig,
	}
}

func (a *API) doUpdateNodegroupConfig(ctx context.Context, call *awsfront.Call, in *updateNodegroupConfigInput) (*change.Output, error) {
	return a.update(ctx, call, in.Named, in.ClientRequestToken, func(p *change.Plan) error {
		p.Type = v1alpha1.UpdateConfig
		if err := in.planned(p); err != nil {
			return err
		}
		changed := p.Group.DeepCopy()
		nodegroupspec.Change(&changed.Spec, p.Change)
		changed.Spec.SubnetIDs = nil // they stay as they are
		if problems := v1alpha1.ValidateNodeGroup(changed); len(problems) > 0 {
			return eksfault.New(eksfault.InvalidParameter, in.ClusterName, in.NodegroupName, "%v", problems.ToAggregate())
		}
		return nil
	})
}

// update makes the Update of a node group that a request asks for. A node group that is being deleted is not changed.
func (a *API) update(ctx context.Context, call *awsfront.Call, in Named, token string, plan func(*change.Plan) error) (*change.Output, error) {
	find := func(ctx context.Context) (*v1alpha1.Cluster, *v1alpha1.NodeGroup, error) {
		return a.Get(ctx, in.ClusterName, in.NodegroupName)
	}
	return change.Answer(change.Make(ctx, a.store, call, in.ClusterName, token, find, func(p *change.Plan) error {
		if !p.Group.DeletionTimestamp.IsZero() {
			return eksfault.New(eksfault.InUse, in.ClusterName, in.NodegroupName, "Nodegroup cannot be updated as it is currently not in Active State: it is %s", eksresource.Deleting)
		}
		return plan(p)
	}))
}

// planned is the change that a request asks for, with the parameters as EKS tells of them.
func (in *updateNodegroupConfigInput) planned(p *change.Plan) error {
	refuse := eksfault.Invalid(in.ClusterName, in.NodegroupName)
	if in.ScalingConfig != nil {
		if _, err := scaled(p.Group.Spec.ScalingConfig, *in.ScalingConfig); err != nil {
			return err
		}
		p.Change.Scaling = new(v1alpha1.UpdateScaling(*in.ScalingConfig))
		for _, size := range []struct {
			name string
			to   *int32
		}{{"MinSize", in.ScalingConfig.MinSize}, {"MaxSize", in.ScalingConfig.MaxSize}, {"DesiredSize", in.ScalingConfig.DesiredSize}} {
			if size.to != nil {
				p.Param(size.name, fmt.Sprint(*size.to))
			}
		}
	}
	if in.Labels != nil {
		if err := in.labels(p, refuse); err != nil {
			return err
		}
	}
	if in.Taints != nil {
		if err := in.taints(p, refuse); err != nil {
			return err
		}
	}
	if err := in.updates(p, refuse); err != nil {
		return err
	}
	if err := in.WarmPoolConfig.plan(p, refuse); err != nil {
		return err
	}
	if len(p.Params) == 0 {
		return refuse("The request changes nothing: give scalingConfig, labels, taints, updateConfig, nodeRepairConfig or warmPoolConfig")
	}
	return nil
}

func (in *updateNodegroupConfigInput) labels(p *change.Plan, refuse eksfault.Refuse) error {
	if err := checkReserved(in.Labels.AddOrUpdateLabels); err != nil {
		return err
	}
	for _, key := range in.Labels.RemoveLabels {
		if _, both := in.Labels.AddOrUpdateLabels[key]; both {
			return refuse("The label %.80q cannot be both added and removed", key)
		}
	}
	remove := slices.Compact(slices.Sorted(slices.Values(in.Labels.RemoveLabels)))
	p.Change.Labels = &v1alpha1.UpdateLabels{Set: labelsFrom(in.Labels.AddOrUpdateLabels), Remove: remove}
	return lists(p,
		list{"LabelsToAdd", in.Labels.AddOrUpdateLabels, len(in.Labels.AddOrUpdateLabels)},
		list{"LabelsToRemove", remove, len(remove)},
	)
}

func (in *updateNodegroupConfigInput) taints(p *change.Plan, refuse eksfault.Refuse) error {
	change := &v1alpha1.UpdateTaints{}
	var err error
	if change.Set, err = taintsFrom(in.Taints.AddOrUpdateTaints); err != nil {
		return err
	}
	if change.Remove, err = taintsFrom(in.Taints.RemoveTaints); err != nil {
		return err
	}
	for _, t := range change.Remove {
		if slices.ContainsFunc(change.Set, func(o v1alpha1.NodeTaint) bool { return o.Key == t.Key && o.Effect == t.Effect }) {
			return refuse("The taint %.80q with effect %s cannot be both added and removed", t.Key, t.Effect)
		}
	}
	p.Change.Taints = change
	return lists(p,
		list{"TaintsToAdd", shownParams(in.Taints.AddOrUpdateTaints), len(in.Taints.AddOrUpdateTaints)},
		list{"TaintsToRemove", shownParams(in.Taints.RemoveTaints), len(in.Taints.RemoveTaints)},
	)
}

// list is a parameter of several values.
type list struct {
	kind   string
	values any
	length int
}

// lists adds the parameters that have values, as JSON.
func lists(p *change.Plan, all ...list) error {
	for _, l := range all {
		if l.length == 0 {
			continue
		}
		text, err := json.Marshal(l.values)
		if err != nil {
			return err
		}
		p.Param(l.kind, string(text))
	}
	return nil
}

// shownParams are taints as parameters of an update have them.
func shownParams(taints []taint) []map[string]string {
	shown := make([]map[string]string, 0, len(taints))
	for _, t := range taints {
		shown = append(shown, map[string]string{"key": t.Key, "value": t.Value, "effect": t.Effect})
	}
	return shown
}
