// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"encoding/json"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/eks/eksfault"
)

// nodeRepairConfig is EKS's. A request's takes the place of the one before as a whole.
type nodeRepairConfig struct {
	Enabled                                                             *bool
	MaxUnhealthyNodeThresholdCount, MaxUnhealthyNodeThresholdPercentage *int32
	MaxParallelNodesRepairedCount, MaxParallelNodesRepairedPercentage   *int32
	NodeRepairConfigOverrides                                           []repairOverride
}

type repairOverride struct {
	NodeMonitoringCondition, NodeUnhealthyReason string
	MinRepairWaitTimeMins                        *int32
	RepairAction                                 string
}

// from returns the node group's nodeRepairConfig after a request, or nil if the request sets nothing. A refusal names
// every rule that the request breaks.
func (n *nodeRepairConfig) from(refuse eksfault.Refuse) (*v1alpha1.NodeRepairConfig, error) {
	config := &v1alpha1.NodeRepairConfig{
		Enabled:                             n.Enabled,
		MaxUnhealthyNodeThresholdCount:      n.MaxUnhealthyNodeThresholdCount,
		MaxUnhealthyNodeThresholdPercentage: n.MaxUnhealthyNodeThresholdPercentage,
		MaxParallelNodesRepairedCount:       n.MaxParallelNodesRepairedCount,
		MaxParallelNodesRepairedPercentage:  n.MaxParallelNodesRepairedPercentage,
	}
	for _, o := range n.NodeRepairConfigOverrides {
		override := v1alpha1.NodeRepairOverride{NodeMonitoringCondition: o.NodeMonitoringCondition, NodeUnhealthyReason: o.NodeUnhealthyReason, RepairAction: v1alpha1.RepairAction(o.RepairAction)}
		if o.MinRepairWaitTimeMins != nil {
			override.MinRepairWaitTimeMins = *o.MinRepairWaitTimeMins
		}
		config.Overrides = append(config.Overrides, override)
	}
	if problems := v1alpha1.ValidateNodeRepair(field.NewPath("nodeRepairConfig"), config); len(problems) > 0 {
		return nil, refuse("%v", problems.ToAggregate())
	}
	if len(n.params()) == 0 {
		return nil, nil //nolint:nilnil // an empty nodeRepairConfig asks for nothing
	}
	return config, nil
}

// repairParam is a parameter of an update.
type repairParam struct{ kind, is string }

// params are the parameters of an update that sets the nodeRepairConfig, as EKS calls them: the switch is one, and all
// else together is another.
func (n *nodeRepairConfig) params() (params []repairParam) {
	if n.Enabled != nil {
		params = append(params, repairParam{"NodeRepairEnabled", strconv.FormatBool(*n.Enabled)})
	}
	rest := shownRepair{
		MaxUnhealthyNodeThresholdCount:      n.MaxUnhealthyNodeThresholdCount,
		MaxUnhealthyNodeThresholdPercentage: n.MaxUnhealthyNodeThresholdPercentage,
		MaxParallelNodesRepairedCount:       n.MaxParallelNodesRepairedCount,
		MaxParallelNodesRepairedPercentage:  n.MaxParallelNodesRepairedPercentage,
	}
	for _, o := range n.NodeRepairConfigOverrides {
		rest.NodeRepairConfigOverrides = append(rest.NodeRepairConfigOverrides, shownOverride(o))
	}
	if raw, err := json.Marshal(rest); err == nil && string(raw) != "{}" { // strings and numbers are always marshalled
		text := string(raw)
		if len(text) > longestParam {
			text = strings.ToValidUTF8(text[:longestParam-len("...")], "") + "..."
		}
		params = append(params, repairParam{"NodeRepairConfig", text})
	}
	return params
}

// longestParam is the length of a parameter that an Update holds, in bytes.
const longestParam = 2048

// shownRepair is a nodeRepairConfig without its switch in JSON, with EKS's names, and shownOverride one of its overrides.
type shownRepair struct {
	MaxUnhealthyNodeThresholdCount      *int32          `json:"maxUnhealthyNodeThresholdCount,omitempty"`
	MaxUnhealthyNodeThresholdPercentage *int32          `json:"maxUnhealthyNodeThresholdPercentage,omitempty"`
	MaxParallelNodesRepairedCount       *int32          `json:"maxParallelNodesRepairedCount,omitempty"`
	MaxParallelNodesRepairedPercentage  *int32          `json:"maxParallelNodesRepairedPercentage,omitempty"`
	NodeRepairConfigOverrides           []shownOverride `json:"nodeRepairConfigOverrides,omitempty"`
}

type shownOverride struct {
	NodeMonitoringCondition string `json:"nodeMonitoringCondition"`
	NodeUnhealthyReason     string `json:"nodeUnhealthyReason"`
	MinRepairWaitTimeMins   *int32 `json:"minRepairWaitTimeMins"`
	RepairAction            string `json:"repairAction"`
}

// showRepair is the nodeRepairConfig of a node group as EKS shows it; nil if no request has set one.
func showRepair(config *v1alpha1.NodeRepairConfig) *nodeRepairConfig {
	if config == nil {
		return nil
	}
	shown := &nodeRepairConfig{
		Enabled:                             config.Enabled,
		MaxUnhealthyNodeThresholdCount:      config.MaxUnhealthyNodeThresholdCount,
		MaxUnhealthyNodeThresholdPercentage: config.MaxUnhealthyNodeThresholdPercentage,
		MaxParallelNodesRepairedCount:       config.MaxParallelNodesRepairedCount,
		MaxParallelNodesRepairedPercentage:  config.MaxParallelNodesRepairedPercentage,
	}
	for _, o := range config.Overrides {
		shown.NodeRepairConfigOverrides = append(shown.NodeRepairConfigOverrides, repairOverride{o.NodeMonitoringCondition, o.NodeUnhealthyReason, new(o.MinRepairWaitTimeMins), string(o.RepairAction)})
	}
	return shown
}
