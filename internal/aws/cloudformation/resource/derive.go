// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// logging is the member logging of EKS. CloudFormation lists the types that are enabled, and EKS takes lists of types that are.
func logging(properties map[string]any) (any, error) {
	given, ok := properties["Logging"]
	if !ok {
		return nil, nil //nolint:nilnil // no member
	}
	outer, _ := given.(map[string]any)
	cluster, _ := outer["ClusterLogging"].(map[string]any)
	enabled, ok := cluster["EnabledTypes"].([]any)
	if !ok {
		return nil, fmt.Errorf("Logging is %v: want ClusterLogging with a list EnabledTypes", given) //nolint:staticcheck // a name
	}
	var names []any
	for _, entry := range enabled {
		one, _ := entry.(map[string]any)
		name, ok := one["Type"].(string)
		if !ok {
			return nil, fmt.Errorf("an entry of EnabledTypes is %v: want a Type", entry)
		}
		names = append(names, name)
	}
	setups := []any{}
	if len(names) > 0 {
		setups = append(setups, map[string]any{"types": names, "enabled": true})
	}
	return map[string]any{"clusterLogging": setups}, nil
}

// Permission is the entry of IpPermissions that stands for a rule of a security group, as a resource of its own and in the lists
// SecurityGroupIngress and SecurityGroupEgress have it.
func Permission(rule map[string]any) map[string]any {
	permission := map[string]any{}
	for _, name := range []string{"FromPort", "IpProtocol", "ToPort"} {
		if value, ok := rule[name]; ok {
			permission[name] = value
		}
	}
	for _, peer := range []struct {
		list  string
		names map[string]string // members by properties
	}{
		{"IpRanges", map[string]string{"CidrIp": "CidrIp"}},
		{"Ipv6Ranges", map[string]string{"CidrIpv6": "CidrIpv6"}},
		{"PrefixListIds", map[string]string{"SourcePrefixListId": "PrefixListId", "DestinationPrefixListId": "PrefixListId"}},
		{"UserIdGroupPairs", map[string]string{
			"SourceSecurityGroupId": "GroupId", "DestinationSecurityGroupId": "GroupId", "SourceSecurityGroupName": "GroupName", "SourceSecurityGroupOwnerId": "UserId",
		}},
	} {
		entry := map[string]any{}
		for _, property := range slices.Sorted(maps.Keys(peer.names)) {
			if value, ok := rule[property]; ok {
				entry[peer.names[property]] = value
			}
		}
		if len(entry) == 0 {
			continue
		}
		if description, ok := rule["Description"]; ok {
			entry["Description"] = description
		}
		permission[peer.list] = []any{entry}
	}
	return permission
}

// queueAttributes are the properties of a queue that are entries of Attributes, whose values are texts.
func queueAttributes(names []string) func(map[string]any) (any, error) {
	return func(properties map[string]any) (any, error) {
		attributes := map[string]any{}
		for _, name := range names {
			value, ok := properties[name]
			if !ok {
				continue
			}
			text, err := document(value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			attributes[name] = text
		}
		if len(attributes) == 0 {
			return nil, nil //nolint:nilnil // no member
		}
		return attributes, nil
	}
}

// queuePolicy is the attribute that has the policy of a queue.
func queuePolicy(properties map[string]any) (any, error) {
	text, err := document(properties["PolicyDocument"])
	if err != nil {
		return nil, fmt.Errorf("PolicyDocument: %w", err)
	}
	return map[string]any{"Policy": text}, nil
}

// document is a document as text: JSON of an object or a list, and a scalar as it is.
func document(value any) (string, error) {
	if text, ok := scalar(value); ok {
		return text, nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("writing a document: %w", err)
	}
	return string(raw), nil
}
