// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/machine/nodegroupspec"
)

type updateNodegroupConfigInput struct {
	ClusterName, NodegroupName, ClientRequestToken string
	ScalingConfig                                  *scaling
	Labels                                         *labelsChange
	Taints                                         *taintsChange
	UpdateConfig                                   *updateConfig
	NodeRepairConfig                               *nodeRepairConfig
}

type labelsChange struct {
	AddOrUpdateLabels map[string]string
	RemoveLabels      []string
}

type taintsChange struct{ AddOrUpdateTaints, RemoveTaints []taint }

func (a *api) updateNodegroupConfig() awsfront.Spec[updateNodegroupConfigInput, updateOutput] {
	return awsfront.Spec[updateNodegroupConfigInput, updateOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *updateNodegroupConfigInput) ([]awsfront.Target, error) {
			return a.aboutNodegroup(ctx, call, in.ClusterName, in.NodegroupName)
		},
		Do: a.doUpdateNodegroupConfig,
	}
}

func (a *api) doUpdateNodegroupConfig(ctx context.Context, call *awsfront.Call, in *updateNodegroupConfigInput) (*updateOutput, error) {
	sent, err := tokenOf(call, in.ClientRequestToken)
	if err != nil {
		return nil, err
	}
	defer a.locks.Hold(in.ClusterName)()
	of, group, err := a.nodegroup(ctx, in.ClusterName, in.NodegroupName)
	if err != nil {
		return nil, err
	}
	again, err := a.repeated(ctx, sent, of, group)
	if err != nil {
		return nil, err
	}
	if again != nil {
		return &updateOutput{showUpdate(again)}, nil
	}
	if !group.DeletionTimestamp.IsZero() {
		return nil, fault(inUse, in.ClusterName, in.NodegroupName, "Nodegroup cannot be updated as it is currently not in Active State: it is %s", deleting)
	}
	p := planned{of: of, group: group, kind: v1alpha1.UpdateConfig}
	if err := in.planned(&p); err != nil {
		return nil, err
	}
	changed := group.DeepCopy()
	nodegroupspec.Change(&changed.Spec, p.change)
	changed.Spec.SubnetIDs = nil // they stay as they are
	if problems := v1alpha1.ValidateNodeGroup(changed); len(problems) > 0 {
		return nil, fault(invalidParameter, in.ClusterName, in.NodegroupName, "%v", problems.ToAggregate())
	}
	return a.accept(ctx, sent, p)
}

// planned is the change that a request asks for, with the parameters as EKS tells of them.
func (in *updateNodegroupConfigInput) planned(p *planned) error {
	refuse := func(format string, args ...any) error {
		return fault(invalidParameter, in.ClusterName, in.NodegroupName, format, args...)
	}
	if in.ScalingConfig != nil {
		if _, err := scaled(p.group.Spec.ScalingConfig, *in.ScalingConfig); err != nil {
			return err
		}
		p.change.Scaling = new(v1alpha1.UpdateScaling(*in.ScalingConfig))
		for _, size := range []struct {
			name string
			to   *int32
		}{{"MinSize", in.ScalingConfig.MinSize}, {"MaxSize", in.ScalingConfig.MaxSize}, {"DesiredSize", in.ScalingConfig.DesiredSize}} {
			if size.to != nil {
				p.param(size.name, fmt.Sprint(*size.to))
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
	if len(p.params) == 0 {
		return refuse("The request changes nothing: give scalingConfig, labels, taints, updateConfig or nodeRepairConfig")
	}
	return nil
}

func (in *updateNodegroupConfigInput) labels(p *planned, refuse refusal) error {
	if err := checkReserved(in.Labels.AddOrUpdateLabels); err != nil {
		return err
	}
	for _, key := range in.Labels.RemoveLabels {
		if _, both := in.Labels.AddOrUpdateLabels[key]; both {
			return refuse("The label %.80q cannot be both added and removed", key)
		}
	}
	remove := slices.Compact(slices.Sorted(slices.Values(in.Labels.RemoveLabels)))
	p.change.Labels = &v1alpha1.UpdateLabels{Set: labelsFrom(in.Labels.AddOrUpdateLabels), Remove: remove}
	return p.lists(
		list{"LabelsToAdd", in.Labels.AddOrUpdateLabels, len(in.Labels.AddOrUpdateLabels)},
		list{"LabelsToRemove", remove, len(remove)},
	)
}

func (in *updateNodegroupConfigInput) taints(p *planned, refuse refusal) error {
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
	p.change.Taints = change
	return p.lists(
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
func (p *planned) lists(all ...list) error {
	for _, l := range all {
		if l.length == 0 {
			continue
		}
		text, err := json.Marshal(l.values)
		if err != nil {
			return err
		}
		p.param(l.kind, string(text))
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
