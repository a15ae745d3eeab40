// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// logTypes are the logs of a control plane.
var logTypes = []string{"api", "audit", "authenticator", "controllerManager", "scheduler"}

// change is one update of EKS, of those that an update of a resource needs.
type change struct {
	name, action string
	members      map[string]any
}

// updateCluster makes one update after the other, as EKS takes no two at a time. An update whose effect is there is left out.
func updateCluster(ctx context.Context, j *job) (bool, error) {
	cluster, err := clusters.describe(ctx, j)
	if err != nil {
		return false, err
	}
	if text(cluster, "status") != "ACTIVE" {
		return false, nil
	}
	changes, err := clusterChanges(j)
	if err != nil {
		return false, err
	}
	for _, c := range changes {
		if holds(cluster, c.members) {
			continue
		}
		if done, err := clusters.step(ctx, j, c.name, c.action, c.members); err != nil || !done {
			return false, err
		}
	}
	return clusters.retags(ctx, j)
}

// clusterChanges are the updates that properties of a cluster need.
func clusterChanges(j *job) ([]change, error) {
	changed, _ := j.of.Changes(j.was, j.is)
	var all []change
	for _, name := range changed {
		value, ok := j.is[name]
		switch name {
		case "Tags", "Force":
			continue
		case "Version":
			if ok {
				members := map[string]any{"version": value}
				if force, given := j.is["Force"]; given {
					members["force"] = force
				}
				all = append(all, change{name, "UpdateClusterVersion", members})
			}
		case "Logging":
			logging, err := loggingOf(j)
			if err != nil {
				return nil, err
			}
			all = append(all, change{name, "UpdateClusterConfig", map[string]any{"logging": logging}})
		case "ResourcesVpcConfig":
			all = append(all, networkChanges(j)...)
		case "AccessConfig":
			access, _ := value.(map[string]any)
			if mode, given := access["AuthenticationMode"]; given {
				all = append(all, change{name, "UpdateClusterConfig", map[string]any{"accessConfig": map[string]any{"authenticationMode": mode}}})
			}
		default:
			if ok && !strings.Contains(name, ".") {
				all = append(all, change{name, "UpdateClusterConfig", map[string]any{strings.ToLower(name[:1]) + name[1:]: value}})
			}
		}
	}
	return all, nil
}

// networkChanges are the updates of a cluster's network: EKS takes subnets and security groups apart from who reaches the endpoint.
func networkChanges(j *job) []change {
	is, _ := j.is["ResourcesVpcConfig"].(map[string]any)
	var all []change
	for _, names := range [][]string{{"SubnetIds", "SecurityGroupIds"}, {"EndpointPrivateAccess", "EndpointPublicAccess", "PublicAccessCidrs"}} {
		members := map[string]any{}
		for _, name := range names {
			if value, ok := is[name]; ok {
				members[strings.ToLower(name[:1])+name[1:]] = value
			}
		}
		if len(members) > 0 {
			all = append(all, change{"ResourcesVpcConfig." + names[0], "UpdateClusterConfig", map[string]any{"resourcesVpcConfig": members}})
		}
	}
	return all
}

// loggingOf is the member logging of EKS: types that the template does not list are switched off.
func loggingOf(j *job) (map[string]any, error) {
	var on, off []any
	if logging, ok := j.is["Logging"].(map[string]any); ok {
		cluster, _ := logging["ClusterLogging"].(map[string]any)
		enabled, _ := cluster["EnabledTypes"].([]any)
		for _, entry := range enabled {
			one, _ := entry.(map[string]any)
			name := textOf(one["Type"])
			if !slices.Contains(logTypes, name) {
				return nil, fmt.Errorf("an entry of EnabledTypes is %v: want a Type of %s", entry, strings.Join(logTypes, ", "))
			}
			on = append(on, name)
		}
	}
	for _, name := range logTypes {
		if !slices.Contains(on, any(name)) {
			off = append(off, name)
		}
	}
	var setups []any
	if len(on) > 0 {
		setups = append(setups, map[string]any{"types": on, "enabled": true})
	}
	if len(off) > 0 {
		setups = append(setups, map[string]any{"types": off, "enabled": false})
	}
	return map[string]any{"clusterLogging": setups}, nil
}

// updateNodegroup changes the version or launch template of a node group, and then its settings.
func updateNodegroup(ctx context.Context, j *job) (bool, error) {
	group, err := nodegroups.describe(ctx, j)
	if err != nil {
		return false, err
	}
	if status := text(group, "status"); status != "ACTIVE" && status != "DEGRADED" {
		return false, nil
	}
	for _, c := range nodegroupChanges(j) {
		if done, err := nodegroups.step(ctx, j, c.name, c.action, c.members); err != nil || !done {
			return false, err
		}
	}
	return nodegroups.retags(ctx, j)
}

func nodegroupChanges(j *job) []change {
	changed, _ := j.of.Changes(j.was, j.is)
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(changed, name) })
	}
	var all []change
	if has("Version", "ReleaseVersion", "LaunchTemplate") {
		members := map[string]any{}
		for _, name := range []string{"Version", "ReleaseVersion", "LaunchTemplate"} {
			if value, ok := j.is[name]; ok && has(name) {
				members[name] = value
			}
		}
		if force, ok := j.is["ForceUpdateEnabled"]; ok {
			members["force"] = force
		}
		all = append(all, change{"version", "UpdateNodegroupVersion", members})
	}
	if !has("Labels", "Taints", "ScalingConfig", "UpdateConfig", "NodeRepairConfig") {
		return all
	}
	members := map[string]any{}
	for _, name := range []string{"ScalingConfig", "UpdateConfig", "NodeRepairConfig"} {
		if value, ok := j.is[name]; ok && has(name) {
			members[name] = value
		}
	}
	if has("Labels") {
		members["labels"] = labelsPayload(j)
	}
	if has("Taints") {
		members["taints"] = taintsPayload(j)
	}
	return append(all, change{"config", "UpdateNodegroupConfig", members})
}

func labelsPayload(j *job) map[string]any {
	is, _ := j.is["Labels"].(map[string]any)
	was, _ := j.was["Labels"].(map[string]any)
	payload := map[string]any{}
	if len(is) > 0 {
		payload["addOrUpdateLabels"] = is
	}
	var removed []any
	for key := range was {
		if _, ok := is[key]; !ok {
			removed = append(removed, key)
		}
	}
	if len(removed) > 0 {
		payload["removeLabels"] = removed
	}
	return payload
}

func taintsPayload(j *job) map[string]any {
	is, _ := j.is["Taints"].([]any)
	was, _ := j.was["Taints"].([]any)
	payload := map[string]any{}
	if len(is) > 0 {
		payload["addOrUpdateTaints"] = is
	}
	var removed []any
	for _, taint := range was {
		if !slices.ContainsFunc(is, func(other any) bool { return sameTaint(taint, other) }) {
			removed = append(removed, taint)
		}
	}
	if len(removed) > 0 {
		payload["removeTaints"] = removed
	}
	return payload
}

// sameTaint reports whether two taints have the same key and effect, so that one takes the place of the other.
func sameTaint(a, b any) bool {
	one, _ := a.(map[string]any)
	other, _ := b.(map[string]any)
	return textOf(one["Key"]) == textOf(other["Key"]) && textOf(one["Effect"]) == textOf(other["Effect"])
}
