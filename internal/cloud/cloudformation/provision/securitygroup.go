// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"encoding/json"
	"fmt"

	"muster.dev/muster/internal/aws/cloudformation/resource"
)

func securityGroupHandlers() map[string]handler {
	return map[string]handler{
		"AWS::EC2::SecurityGroup": {
			create: securityGroups.create, complete: setRules, read: readGroup, remove: securityGroups.deletes("DeleteSecurityGroup"),
			update: func(ctx context.Context, j *job) (bool, error) { return both(ctx, j, setRules, securityGroups.retag) },
		},
		"AWS::EC2::SecurityGroupIngress": rule("Ingress"),
		"AWS::EC2::SecurityGroupEgress":  rule("Egress"),
	}
}

func readGroup(ctx context.Context, j *job) (map[string]any, bool, error) {
	group, err := securityGroups.find(ctx, j, j.attribute("GroupId"))
	if err != nil {
		return nil, false, err
	}
	attributes := picked(group, "GroupId", "VpcId")
	attributes["Id"] = attributes["GroupId"]
	return attributes, true, nil
}

// everything is the rule of a new group that lets all out, which goes once the template has rules of its own.
var everything = map[string]any{"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}

// setRules brings the rules that the group's own properties list from those before to those that are asked for. Rules that are
// resources of their own, and rules that others have added, stay.
func setRules(ctx context.Context, j *job) error {
	for _, direction := range []string{"Ingress", "Egress"} {
		name := "SecurityGroup" + direction
		before, err := permissions(j.was, name)
		if err != nil {
			return err
		}
		after, err := permissions(j.is, name)
		if err != nil {
			return err
		}
		if direction == "Egress" { // a group without rules of its own lets all out
			before, after = letOut(j.was, name, before), letOut(j.is, name, after)
		}
		for key, permission := range after {
			if before[key] == nil {
				if err := j.rule(ctx, "Authorize", name, permission, "InvalidPermission.Duplicate"); err != nil {
					return err
				}
			}
		}
		for key, permission := range before {
			if after[key] == nil {
				if err := j.rule(ctx, "Revoke", name, permission, "InvalidPermission.NotFound"); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// letOut are the rules about what goes out of a group whose properties list none, or those that they list.
func letOut(properties map[string]any, name string, rules map[string]map[string]any) map[string]map[string]any {
	if _, listed := properties[name]; listed {
		return rules
	}
	permission := resource.Permission(everything)
	return map[string]map[string]any{keyOf(permission): permission}
}

// permissions are the rules of a property, by what they say.
func permissions(properties map[string]any, name string) (map[string]map[string]any, error) {
	all := map[string]map[string]any{}
	listed, ok := properties[name]
	if !ok {
		return all, nil
	}
	rules, ok := listed.([]any)
	if !ok {
		return nil, fmt.Errorf("%s is %v: want a list", name, listed)
	}
	for i, entry := range rules {
		rule, ok := entry.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s.%d is %v: want an object", name, i+1, entry)
		}
		permission := resource.Permission(rule)
		all[keyOf(permission)] = permission
	}
	return all, nil
}

// keyOf is a rule as text. Numbers are equal to their texts.
func keyOf(permission map[string]any) string {
	for _, name := range []string{"FromPort", "ToPort"} {
		if value, ok := permission[name]; ok {
			permission[name] = textOf(value)
		}
	}
	raw, err := json.Marshal(permission)
	if err != nil {
		return fmt.Sprint(permission)
	}
	return string(raw)
}

// rule authorizes or revokes a rule. It is not an error if that is done already.
func (j *job) rule(ctx context.Context, verb, name string, permission map[string]any, done string) error {
	_, err := j.ask(ctx, ec2, verb+name, map[string]any{"GroupId": j.attribute("GroupId"), "IpPermissions": []any{permission}})
	if hasCode(err, done) {
		return nil
	}
	return err
}

// rule is the handler of rules that are resources of their own.
func rule(direction string) handler {
	name := "SecurityGroup" + direction
	found := func(ctx context.Context, j *job) (string, error) {
		rules, err := described{action: "DescribeSecurityGroupRules", list: "SecurityGroupRules"}.filtered(ctx, j, map[string]string{"tag:" + mark: j.token()})
		if err != nil || len(rules) == 0 {
			return "", err
		}
		return text(rules[0], "SecurityGroupRuleId"), nil
	}
	return handler{
		create: func(ctx context.Context, j *job) (map[string]any, error) {
			if id, err := found(ctx, j); err != nil || id != "" {
				return map[string]any{"Id": id}, err
			}
			input, err := j.of.Input(j.is, map[string]string{mark: j.token()}, "")
			if err != nil {
				return nil, err
			}
			out, err := j.do(ctx, ec2, "Authorize"+name, input)
			if err != nil {
				return nil, err
			}
			id := text(firstOf(out, "SecurityGroupRules"), "SecurityGroupRuleId")
			if id == "" {
				return nil, fmt.Errorf("the action Authorize%s answered without a rule", name)
			}
			return map[string]any{"Id": id}, nil
		},
		read: func(ctx context.Context, j *job) (map[string]any, bool, error) {
			id, err := found(ctx, j)
			if err == nil && id == "" {
				err = errGone
			}
			return map[string]any{"Id": id}, err == nil, err
		},
		update: func(ctx context.Context, j *job) (bool, error) {
			description := map[string]any{"SecurityGroupRuleId": j.attribute("Id"), "Description": j.property("Description")}
			_, err := j.ask(ctx, ec2, "UpdateSecurityGroupRuleDescriptions"+direction, map[string]any{"GroupId": j.property("GroupId"), "SecurityGroupRuleDescriptions": []any{description}})
			return err == nil, err
		},
		remove: func(ctx context.Context, j *job) (bool, error) {
			_, err := j.ask(ctx, ec2, "Revoke"+name, map[string]any{"GroupId": j.property("GroupId"), "SecurityGroupRuleIds": []any{j.attribute("Id")}})
			return err == nil, err
		},
	}
}
