// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

const iam = "iam"

func iamHandlers() map[string]handler {
	return map[string]handler{
		"AWS::IAM::Role": {
			create: named("GetRole", "Role", "RoleName"), complete: setRole, read: readRole, remove: removeRole,
			update: func(ctx context.Context, j *job) (bool, error) { return both(ctx, j, changeRole, setRole, retagRole) },
		},
		"AWS::IAM::Policy": {
			create: createPolicy, complete: setPolicy, read: readPolicy, remove: removePolicy,
			update: func(ctx context.Context, j *job) (bool, error) { return both(ctx, j, setPolicy) },
		},
		"AWS::IAM::InstanceProfile": {
			create: named("GetInstanceProfile", "InstanceProfile", "InstanceProfileName"), complete: setProfile, read: readProfile, remove: removeProfile,
			update: func(ctx context.Context, j *job) (bool, error) { return both(ctx, j, setProfile) },
		},
	}
}

// named makes an entity under its name. A name that is taken is the resource's own if it has the tag of the creation.
func named(read, member, name string) func(ctx context.Context, j *job) (map[string]any, error) {
	return func(ctx context.Context, j *job) (map[string]any, error) {
		_, err := j.first(ctx)
		if hasCode(err, "EntityAlreadyExists") {
			out, unread := j.ask(ctx, iam, read, map[string]any{name: j.property(name)})
			if unread != nil {
				return nil, unread
			}
			if tagsIn(out, member+".Tags")[mark] == j.token() {
				return map[string]any{}, nil
			}
		}
		return map[string]any{}, err
	}
}

// texts are the entries of a property that is a list of texts.
func texts(properties map[string]any, name string) []string {
	items, _ := properties[name].([]any)
	var all []string
	for _, item := range items {
		all = append(all, textOf(item))
	}
	return all
}

// inline are the documents of a role's inline policies by their names.
func inline(properties map[string]any) (map[string]any, error) {
	documents := map[string]any{}
	items, _ := properties["Policies"].([]any)
	for i, item := range items {
		policy, _ := item.(map[string]any)
		name := textOf(policy["PolicyName"])
		if name == "" || policy["PolicyDocument"] == nil {
			return nil, fmt.Errorf("the element Policies.%d is %v: want PolicyName and PolicyDocument", i+1, item)
		}
		documents[name] = policy["PolicyDocument"]
	}
	return documents, nil
}

// setRole brings the policies of a role to those that its properties list. Policies that are resources of their own, and those
// that others have added, stay.
func setRole(ctx context.Context, j *job) error {
	role := j.property("RoleName")
	for _, policy := range texts(j.is, "ManagedPolicyArns") {
		if _, err := j.ask(ctx, iam, "AttachRolePolicy", map[string]any{"RoleName": role, "PolicyArn": policy}); err != nil {
			return err
		}
	}
	for _, policy := range texts(j.was, "ManagedPolicyArns") {
		if slices.Contains(texts(j.is, "ManagedPolicyArns"), policy) {
			continue
		}
		if _, err := j.ask(ctx, iam, "DetachRolePolicy", map[string]any{"RoleName": role, "PolicyArn": policy}); err != nil && !isGone(err) {
			return err
		}
	}
	is, err := inline(j.is)
	if err != nil {
		return err
	}
	was, err := inline(j.was)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, err := j.ask(ctx, iam, "PutRolePolicy", map[string]any{"RoleName": role, "PolicyName": name, "PolicyDocument": is[name]}); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if is[name] != nil {
			continue
		}
		if _, err := j.ask(ctx, iam, "DeleteRolePolicy", map[string]any{"RoleName": role, "PolicyName": name}); err != nil && !isGone(err) {
			return err
		}
	}
	return nil
}

// changeRole changes what a role itself is.
func changeRole(ctx context.Context, j *job) error {
	role := j.property("RoleName")
	changed, _ := j.of.Changes(j.was, j.is)
	if slices.Contains(changed, "AssumeRolePolicyDocument") {
		if _, err := j.ask(ctx, iam, "UpdateAssumeRolePolicy", map[string]any{"RoleName": role, "PolicyDocument": j.is["AssumeRolePolicyDocument"]}); err != nil {
			return err
		}
	}
	if slices.Contains(changed, "Description") || slices.Contains(changed, "MaxSessionDuration") {
		members := map[string]any{"RoleName": role, "Description": j.property("Description")}
		if lasts, ok := j.is["MaxSessionDuration"]; ok {
			members["MaxSessionDuration"] = lasts
		}
		if _, err := j.ask(ctx, iam, "UpdateRole", members); err != nil {
			return err
		}
	}
	if !slices.Contains(changed, "PermissionsBoundary") {
		return nil
	}
	if boundary := j.property("PermissionsBoundary"); boundary != "" {
		_, err := j.ask(ctx, iam, "PutRolePermissionsBoundary", map[string]any{"RoleName": role, "PermissionsBoundary": boundary})
		return err
	}
	_, err := j.ask(ctx, iam, "DeleteRolePermissionsBoundary", map[string]any{"RoleName": role})
	return err
}

func retagRole(ctx context.Context, j *job) error {
	return retag(j, func(set map[string]string, removed []string) error {
		role := j.property("RoleName")
		if len(set) > 0 {
			if _, err := j.ask(ctx, iam, "TagRole", map[string]any{"RoleName": role, "Tags": pairs(set)}); err != nil {
				return err
			}
		}
		if len(removed) == 0 {
			return nil
		}
		_, err := j.ask(ctx, iam, "UntagRole", map[string]any{"RoleName": role, "TagKeys": anys(removed)})
		return err
	})
}

func readRole(ctx context.Context, j *job) (map[string]any, bool, error) {
	out, err := j.ask(ctx, iam, "GetRole", map[string]any{"RoleName": j.Resource.PhysicalID})
	return picked(at(out, "Role"), "Arn", "RoleId"), err == nil, err
}

// removeRole takes all policies from a role and deletes it.
func removeRole(ctx context.Context, j *job) (bool, error) {
	role := map[string]any{"RoleName": j.Resource.PhysicalID}
	attached, err := j.ask(ctx, iam, "ListAttachedRolePolicies", role)
	if err != nil {
		return false, err
	}
	for _, policy := range list(attached, "AttachedPolicies") {
		if _, err := j.ask(ctx, iam, "DetachRolePolicy", map[string]any{"RoleName": j.Resource.PhysicalID, "PolicyArn": text(policy, "PolicyArn")}); err != nil && !isGone(err) {
			return false, err
		}
	}
	own, err := inline(j.is)
	if err != nil {
		return false, err
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if _, err := j.ask(ctx, iam, "DeleteRolePolicy", map[string]any{"RoleName": j.Resource.PhysicalID, "PolicyName": name}); err != nil && !isGone(err) {
			return false, err
		}
	}
	_, err = j.ask(ctx, iam, "DeleteRole", role)
	return err == nil, err
}

// createPolicy makes the id of an inline policy: nothing is there yet.
func createPolicy(_ context.Context, j *job) (map[string]any, error) {
	if len(texts(j.is, "Groups")) > 0 {
		return nil, errNoGroups
	}
	if len(texts(j.is, "Roles")) == 0 && len(texts(j.is, "Users")) == 0 {
		return nil, errors.New("the policy names no Roles and no Users: it needs one")
	}
	return map[string]any{"Id": "policy-" + j.token()[:12]}, nil
}

// holders are the actions about inline policies of roles and of users.
var holders = []struct{ property, member, put, get, remove string }{
	{"Roles", "RoleName", "PutRolePolicy", "GetRolePolicy", "DeleteRolePolicy"},
	{"Users", "UserName", "PutUserPolicy", "GetUserPolicy", "DeleteUserPolicy"},
}

func setPolicy(ctx context.Context, j *job) error {
	for _, h := range holders {
		for _, name := range texts(j.is, h.property) {
			members := map[string]any{h.member: name, "PolicyName": j.property("PolicyName"), "PolicyDocument": j.is["PolicyDocument"]}
			if _, err := j.ask(ctx, iam, h.put, members); err != nil {
				return err
			}
		}
		renamed := textOf(j.was["PolicyName"]) != j.property("PolicyName")
		for _, name := range texts(j.was, h.property) {
			if !renamed && slices.Contains(texts(j.is, h.property), name) {
				continue
			}
			if _, err := j.ask(ctx, iam, h.remove, map[string]any{h.member: name, "PolicyName": textOf(j.was["PolicyName"])}); err != nil && !isGone(err) {
				return err
			}
		}
	}
	return nil
}

func readPolicy(_ context.Context, j *job) (map[string]any, bool, error) {
	return map[string]any{"Id": j.attribute("Id")}, true, nil
}

func removePolicy(ctx context.Context, j *job) (bool, error) {
	for _, h := range holders {
		for _, name := range texts(j.is, h.property) {
			if _, err := j.ask(ctx, iam, h.remove, map[string]any{h.member: name, "PolicyName": j.property("PolicyName")}); err != nil && !isGone(err) {
				return false, err
			}
		}
	}
	return true, nil
}

// setProfile brings the role of an instance profile to the one that is asked for.
func setProfile(ctx context.Context, j *job) error {
	profile := j.property("InstanceProfileName")
	out, err := j.ask(ctx, iam, "GetInstanceProfile", map[string]any{"InstanceProfileName": profile})
	if err != nil {
		return err
	}
	wanted, had := texts(j.is, "Roles"), []string{}
	for _, role := range list(out, "InstanceProfile.Roles") {
		had = append(had, text(role, "RoleName"))
	}
	for _, role := range had {
		if !slices.Contains(wanted, role) {
			if _, err := j.ask(ctx, iam, "RemoveRoleFromInstanceProfile", map[string]any{"InstanceProfileName": profile, "RoleName": role}); err != nil && !isGone(err) {
				return err
			}
		}
	}
	for _, role := range wanted {
		if !slices.Contains(had, role) {
			if _, err := j.ask(ctx, iam, "AddRoleToInstanceProfile", map[string]any{"InstanceProfileName": profile, "RoleName": role}); err != nil {
				return err
			}
		}
	}
	return nil
}

func readProfile(ctx context.Context, j *job) (map[string]any, bool, error) {
	out, err := j.ask(ctx, iam, "GetInstanceProfile", map[string]any{"InstanceProfileName": j.Resource.PhysicalID})
	return picked(at(out, "InstanceProfile"), "Arn"), err == nil, err
}

func removeProfile(ctx context.Context, j *job) (bool, error) {
	profile := map[string]any{"InstanceProfileName": j.Resource.PhysicalID}
	out, err := j.ask(ctx, iam, "GetInstanceProfile", profile)
	if err != nil {
		return false, err
	}
	for _, role := range list(out, "InstanceProfile.Roles") {
		members := map[string]any{"InstanceProfileName": j.Resource.PhysicalID, "RoleName": text(role, "RoleName")}
		if _, err := j.ask(ctx, iam, "RemoveRoleFromInstanceProfile", members); err != nil && !isGone(err) {
			return false, err
		}
	}
	_, err = j.ask(ctx, iam, "DeleteInstanceProfile", profile)
	return err == nil, err
}
