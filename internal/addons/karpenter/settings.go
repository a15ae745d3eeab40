// SPDX-License-Identifier: Apache-2.0

package karpenter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/internal/addons/addon"
)

// variables are the environment variables of the controller, by the setting of the chart that sets each of them.
func variables() map[string]string {
	return map[string]string{
		"amiRefreshInterval":               "AMI_REFRESH_INTERVAL",
		"batchIdleDuration":                "BATCH_IDLE_DURATION",
		"batchMaxDuration":                 "BATCH_MAX_DURATION",
		"clusterCABundle":                  "CLUSTER_CA_BUNDLE",
		"clusterEndpoint":                  "CLUSTER_ENDPOINT",
		"clusterName":                      "CLUSTER_NAME",
		"disableClusterStateObservability": "DISABLE_CLUSTER_STATE_OBSERVABILITY",
		"disableDryRun":                    "DISABLE_DRY_RUN",
		"eksControlPlane":                  "EKS_CONTROL_PLANE",
		"enableZonalShift":                 "ENABLE_ZONAL_SHIFT",
		"ignoreDRARequests":                "IGNORE_DRA_REQUESTS",
		"interruptionQueue":                "INTERRUPTION_QUEUE",
		"isolatedVPC":                      "ISOLATED_VPC",
		"legacyNodeRepair":                 "LEGACY_NODE_REPAIR",
		"minValuesPolicy":                  "MIN_VALUES_POLICY",
		"preferencePolicy":                 "PREFERENCE_POLICY",
		"reservedENIs":                     "RESERVED_ENIS",
		"securityGroupRefreshInterval":     "SECURITY_GROUP_REFRESH_INTERVAL",
		"subnetRefreshInterval":            "SUBNET_REFRESH_INTERVAL",
		"vmMemoryOverheadPercent":          "VM_MEMORY_OVERHEAD_PERCENT",
	}
}

// levelVariable is the variable of the log level, which is no part of the chart's settings.
const levelVariable = "LOG_LEVEL"

// gates are the feature gates of this version by the setting of the chart that has them, with the chart's defaults. Gates
// of devices that no machine has, such as draEFA, are left out.
func gates() map[string]map[string]bool {
	return map[string]map[string]bool{
		"featureGates": {
			"capacityBuffer": false, "nodeOverlay": false, "nodeRepair": false, gatePodCost: false, "reservedCapacity": true,
			"spotToSpotConsolidation": false, "staticCapacity": false, "terminateFirstDrift": false, "terminateFirstRepair": false,
		},
		"awsFeatureGates": {"nodeClassCEL": false, "rebootForRepair": false},
	}
}

// gatesVariables are the variables of the gates, by the setting of the chart.
func gatesVariables() map[string]string {
	return map[string]string{"featureGates": "FEATURE_GATES", "awsFeatureGates": "AWS_FEATURE_GATES"}
}

// gatePodCost has the controller write annotations of pods, for which its role needs another verb.
const gatePodCost = "podDeletionCostManagement"

// configure sets in the Deployment what the configuration says.
func configure(objects []*unstructured.Unstructured, values addon.Values) ([]*unstructured.Unstructured, error) {
	set := environment(values)
	controller, _ := values["controller"].(map[string]any)
	for _, object := range objects {
		if object.GetKind() == "ClusterRole" && object.GetName() == roleCore && annotatesPods(values) {
			if err := letPatchPods(object); err != nil {
				return nil, addon.Wrong(object, err)
			}
		}
		if object.GetKind() != "Deployment" {
			continue
		}
		err := addon.Containers(object, func(container map[string]any) {
			container["env"] = merged(container["env"], set)
			if resources, ok := controller["resources"]; ok {
				container["resources"] = resources
			}
		})
		if err == nil {
			if policy, ok := values["dnsPolicy"]; ok {
				err = unstructured.SetNestedField(object.Object, policy, "spec", "template", "spec", "dnsPolicy")
			}
		}
		if err != nil {
			return nil, addon.Wrong(object, err)
		}
	}
	return objects, nil
}

// environment returns the variables that a configuration sets. Variables of controller.env win, as in the chart, where
// they come last.
func environment(values addon.Values) map[string]string {
	set := map[string]string{}
	settings, _ := values["settings"].(map[string]any)
	for setting, variable := range variables() {
		if value, ok := settings[setting]; ok {
			set[variable] = fmt.Sprint(value)
		}
	}
	if level, ok := values["logLevel"]; ok {
		set[levelVariable] = fmt.Sprint(level)
	}
	for setting, variable := range gatesVariables() {
		if changed, ok := settings[setting].(map[string]any); ok {
			set[variable] = featureGates(gates()[setting], changed)
		}
	}
	controller, _ := values["controller"].(map[string]any)
	more, _ := controller["env"].([]any)
	for _, item := range more {
		if variable, ok := item.(map[string]any); ok {
			set[fmt.Sprint(variable["name"])] = fmt.Sprint(variable["value"])
		}
	}
	return set
}

// featureGates writes gates as Karpenter reads them, sorted by name: all, those included that keep their default.
func featureGates(all map[string]bool, changed map[string]any) string {
	for name, on := range changed {
		if on, ok := on.(bool); ok {
			all[name] = on
		}
	}
	parts := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, fmt.Sprintf("%s%s=%t", strings.ToUpper(name[:1]), name[1:], all[name]))
	}
	return strings.Join(parts, ",")
}

// roleCore is the ClusterRole with what the controller may do with pods.
const roleCore = "karpenter-core"

func annotatesPods(values addon.Values) bool {
	on, _, _ := unstructured.NestedBool(values, "settings", "featureGates", gatePodCost) // the schema says that it is one
	return on
}

// letPatchPods adds the verb to the rule about pods that may be deleted, as the chart does.
func letPatchPods(role *unstructured.Unstructured) error {
	rules, _, err := unstructured.NestedSlice(role.Object, "rules")
	if err != nil {
		return err
	}
	for _, item := range rules {
		if rule, ok := item.(map[string]any); ok && fmt.Sprint(rule["resources"], rule["verbs"]) == "[pods] [delete]" {
			rule["verbs"] = []any{"delete", "patch"}
		}
	}
	return unstructured.SetNestedSlice(role.Object, rules, "rules")
}

// merged sets variables of a container: those that are there get the new value in their place, others follow, sorted by
// name.
func merged(env any, set map[string]string) []any {
	there, _ := env.([]any)
	all, left := slices.Clone(there), maps.Clone(set)
	for i, item := range all {
		variable, ok := item.(map[string]any)
		if !ok {
			continue
		}
		name := fmt.Sprint(variable["name"])
		if value, ok := left[name]; ok {
			all[i] = map[string]any{"name": name, "value": value}
			delete(left, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		all = append(all, map[string]any{"name": name, "value": left[name]})
	}
	return all
}
