// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// policiesOf are the access policies of an entry, by their ARNs.
func policiesOf(properties map[string]any) (map[string]any, error) {
	items, _ := properties["AccessPolicies"].([]any)
	scopes := map[string]any{}
	for i, item := range items {
		one, _ := item.(map[string]any)
		name := textOf(one["PolicyArn"])
		if name == "" || one["AccessScope"] == nil {
			return nil, fmt.Errorf("AccessPolicies.%d is %v: want PolicyArn and AccessScope", i+1, item)
		}
		scopes[name] = one["AccessScope"]
	}
	return scopes, nil
}

// setPolicies associates the access policies that are asked for, and disassociates those that are not any more.
func setPolicies(ctx context.Context, j *job) error {
	is, err := policiesOf(j.is)
	if err != nil {
		return err
	}
	was, err := policiesOf(j.was)
	if err != nil {
		return err
	}
	for name, scope := range is {
		members := entries.of(j)
		members["policyArn"], members["accessScope"] = name, scope
		if _, err := j.ask(ctx, eks, "AssociateAccessPolicy", members); err != nil {
			return err
		}
	}
	for name := range was {
		if is[name] != nil {
			continue
		}
		members := entries.of(j)
		members["policyArn"] = name
		if _, err := j.ask(ctx, eks, "DisassociateAccessPolicy", members); err != nil && !isGone(err) {
			return err
		}
	}
	return nil
}

func updateEntry(ctx context.Context, j *job) (bool, error) {
	changed, _ := j.of.Changes(j.was, j.is)
	members := map[string]any{}
	if slices.Contains(changed, "KubernetesGroups") {
		members["kubernetesGroups"] = []any{}
		if groups, ok := j.is["KubernetesGroups"]; ok {
			members["kubernetesGroups"] = groups
		}
	}
	if name, ok := j.is["Username"]; ok && slices.Contains(changed, "Username") {
		members["username"] = name
	}
	if len(members) > 0 {
		maps.Copy(members, entries.of(j))
		if _, err := j.ask(ctx, eks, "UpdateAccessEntry", members); err != nil {
			return false, err
		}
	}
	return both(ctx, j, setPolicies, entries.retag)
}

func createAssociation(ctx context.Context, j *job) (map[string]any, error) {
	out, err := j.first(ctx)
	return associationOf(out), err
}

// associationOf are the attributes of a pod identity association.
func associationOf(out any) map[string]any {
	attributes := map[string]any{}
	for name, path := range map[string]string{"AssociationArn": "associationArn", "AssociationId": "associationId", "ExternalId": "externalId"} {
		if value := text(out, "association."+path); value != "" {
			attributes[name] = value
		}
	}
	return attributes
}

func readPodAssociation(ctx context.Context, j *job) (map[string]any, bool, error) {
	out, err := j.ask(ctx, eks, "DescribePodIdentityAssociation", map[string]any{"clusterName": j.property("ClusterName"), "associationId": j.attribute("AssociationId")})
	return associationOf(out), err == nil, err
}

func updatePodAssociation(ctx context.Context, j *job) (bool, error) {
	changed, _ := j.of.Changes(j.was, j.is)
	members := map[string]any{}
	for _, name := range []string{"RoleArn", "DisableSessionTags", "TargetRoleArn", "Policy"} {
		if value, ok := j.is[name]; ok && slices.Contains(changed, name) {
			members[name] = value
		}
	}
	if len(members) > 0 {
		members["clusterName"], members["associationId"], members["clientRequestToken"] = j.property("ClusterName"), j.attribute("AssociationId"), j.stepToken("association")
		if _, err := j.ask(ctx, eks, "UpdatePodIdentityAssociation", members); err != nil {
			return false, err
		}
	}
	return entries.retags(ctx, j)
}
