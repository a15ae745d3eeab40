// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const eks = "eks"

// kind says how a type of EKS is described.
type kind struct {
	// read is the action, such as DescribeCluster, and member the one of its output.
	read, member string
	// names are the members of the actions' inputs that name the resource, by the properties that have them.
	names map[string]string
	// attributes are paths in the description by the names of attributes.
	attributes map[string]string
}

var (
	clusters = kind{"DescribeCluster", "cluster", map[string]string{"Name": "name"}, map[string]string{
		"Arn": "arn", "CertificateAuthorityData": "certificateAuthority.data", "ClusterSecurityGroupId": "resourcesVpcConfig.clusterSecurityGroupId", "Endpoint": "endpoint",
		"OpenIdConnectIssuerUrl": "identity.oidc.issuer", "KubernetesNetworkConfig.ServiceIpv6Cidr": "kubernetesNetworkConfig.serviceIpv6Cidr",
	}}
	nodegroups = kind{"DescribeNodegroup", "nodegroup", map[string]string{"ClusterName": "clusterName", "NodegroupName": "nodegroupName"}, map[string]string{
		"Arn": "nodegroupArn", "ClusterName": "clusterName", "NodegroupName": "nodegroupName",
	}}
	addons   = kind{"DescribeAddon", "addon", map[string]string{"ClusterName": "clusterName", "AddonName": "addonName"}, map[string]string{"Arn": "addonArn"}}
	entries  = kind{"DescribeAccessEntry", "accessEntry", map[string]string{"ClusterName": "clusterName", "PrincipalArn": "principalArn"}, map[string]string{"AccessEntryArn": "accessEntryArn"}}
	profiles = kind{"DescribeFargateProfile", "fargateProfile", map[string]string{"ClusterName": "clusterName", "FargateProfileName": "fargateProfileName"}, map[string]string{"Arn": "fargateProfileArn"}}
)

func eksHandlers() map[string]handler {
	return map[string]handler{
		"AWS::EKS::Cluster":        {create: clusters.create, read: clusters.stable, update: updateCluster, remove: clusters.deletes("DeleteCluster")},
		"AWS::EKS::Nodegroup":      {create: nodegroups.create, read: nodegroups.stable, update: updateNodegroup, remove: nodegroups.deletes("DeleteNodegroup")},
		"AWS::EKS::Addon":          {create: addons.create, read: addons.stable, update: updateAddon, remove: removeAddon},
		"AWS::EKS::AccessEntry":    {create: entries.create, complete: setPolicies, read: entries.stable, update: updateEntry, remove: entries.deletes("DeleteAccessEntry")},
		"AWS::EKS::FargateProfile": {create: profiles.create, read: profiles.stable, update: profiles.retags, remove: profiles.deletes("DeleteFargateProfile")},
		"AWS::EKS::PodIdentityAssociation": {
			create: createAssociation, read: readPodAssociation, update: updatePodAssociation,
			remove: func(ctx context.Context, j *job) (bool, error) {
				_, err := j.ask(ctx, eks, "DeletePodIdentityAssociation", map[string]any{"clusterName": j.property("ClusterName"), "associationId": j.attribute("AssociationId")})
				return err == nil, err
			},
		},
	}
}

// of are the members that name the resource.
func (k kind) of(j *job) map[string]any {
	members := map[string]any{}
	for property, member := range k.names {
		members[member] = j.property(property)
	}
	return members
}

// create makes the resource by an action that takes a client token.
func (k kind) create(ctx context.Context, j *job) (map[string]any, error) {
	_, err := j.first(ctx)
	return map[string]any{}, err
}

// describe reads the resource.
func (k kind) describe(ctx context.Context, j *job) (any, error) {
	out, err := j.ask(ctx, eks, k.read, k.of(j))
	return at(out, k.member), err
}

// stable reads the attributes, and waits until nothing goes on. A status that says that it failed is an error.
func (k kind) stable(ctx context.Context, j *job) (map[string]any, bool, error) {
	item, err := k.describe(ctx, j)
	if err != nil {
		return nil, false, err
	}
	attributes := map[string]any{"Id": j.Resource.PhysicalID}
	for name, path := range k.attributes {
		if value := text(item, path); value != "" {
			attributes[name] = value
		}
	}
	if k.member == clusters.member { // empty without a key
		attributes["EncryptionConfigKeyArn"] = ""
		for _, one := range list(item, "encryptionConfig") {
			attributes["EncryptionConfigKeyArn"] = text(one, "provider.keyArn")
		}
	}
	switch status := text(item, "status"); status {
	case "", "ACTIVE", "DEGRADED": // which lacks nodes, as a rule, and works once it has them
		return attributes, true, nil
	case "FAILED", "CREATE_FAILED", "DELETE_FAILED", "UPDATE_FAILED":
		return attributes, false, fmt.Errorf("the %s is %s: %s", k.member, status, issues(item))
	default:
		return attributes, false, nil
	}
}

// issues are what a description says about the health of the resource.
func issues(item any) string {
	var all []string
	for _, issue := range list(item, "health.issues") {
		all = append(all, text(issue, "code")+": "+text(issue, "message"))
	}
	return strings.Join(all, "; ")
}

// deletes removes the resource by an action, and waits until it is gone.
func (k kind) deletes(action string) func(ctx context.Context, j *job) (bool, error) {
	return func(ctx context.Context, j *job) (bool, error) { return k.remove(ctx, j, action, k.of(j)) }
}

func (k kind) remove(ctx context.Context, j *job, action string, members map[string]any) (bool, error) {
	item, err := k.describe(ctx, j)
	if err != nil {
		return false, err
	}
	switch text(item, "status") {
	case "DELETING":
		return false, nil
	case "DELETE_FAILED":
		return false, fmt.Errorf("the %s is DELETE_FAILED: %s", k.member, issues(item))
	}
	_, err = j.ask(ctx, eks, action, members)
	return false, err
}

// step makes one update of EKS and reports whether it has succeeded. It is the same update however often it is asked for in
// one operation.
func (k kind) step(ctx context.Context, j *job, name, action string, members map[string]any) (bool, error) {
	members = maps.Clone(members)
	maps.Copy(members, k.of(j))
	members["clientRequestToken"] = j.stepToken(name)
	out, err := j.ask(ctx, eks, action, members)
	if unchanged(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	asked := map[string]any{"updateId": text(out, "update.id"), "name": j.property("ClusterName")}
	switch k.member {
	case clusters.member:
		asked["name"] = j.property("Name")
	case nodegroups.member:
		asked["nodegroupName"] = j.property("NodegroupName")
	case addons.member:
		asked["addonName"] = j.property("AddonName")
	}
	out, err = j.ask(ctx, eks, "DescribeUpdate", asked)
	if err != nil {
		return false, err
	}
	switch status := text(out, "update.status"); status {
	case "Successful":
		return true, nil
	case "InProgress":
		return false, nil
	default:
		var why []string
		for _, one := range list(out, "update.errors") {
			why = append(why, text(one, "errorCode")+": "+text(one, "errorMessage"))
		}
		return false, fmt.Errorf("the update %s is %s: %s", text(out, "update.id"), status, strings.Join(why, "; "))
	}
}

// unchanged reports whether EKS refused an update because it would change nothing.
func unchanged(err error) bool {
	if !hasCode(err, "InvalidParameterException", "InvalidRequestException") {
		return false
	}
	return slices.ContainsFunc([]string{"No changes needed", "already at the desired configuration", " is already at release version ", " is already at version "}, func(words string) bool {
		return strings.Contains(err.Error(), words)
	})
}

// holds reports whether a description has what properties ask for: each member that they name, by names in any case.
func holds(described, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		for name, value := range wanted {
			if !holds(at(described, strings.ToLower(name[:1])+name[1:]), value) {
				return false
			}
		}
		return true
	case []any:
		items, _ := described.([]any)
		return slices.EqualFunc(items, wanted, holds)
	default:
		return described != nil && textOf(described) == textOf(wanted)
	}
}

// retag brings the tags of the resource to those that are asked for.
func (k kind) retag(ctx context.Context, j *job) error {
	return retag(j, func(set map[string]string, removed []string) error {
		name := j.attribute("Arn")
		for _, other := range []string{"AccessEntryArn", "AssociationArn"} {
			if name == "" {
				name = j.attribute(other)
			}
		}
		if len(set) > 0 {
			tags := map[string]any{}
			for key, value := range set {
				tags[key] = value
			}
			if _, err := j.ask(ctx, eks, "TagResource", map[string]any{"resourceArn": name, "tags": tags}); err != nil {
				return err
			}
		}
		if len(removed) == 0 {
			return nil
		}
		_, err := j.ask(ctx, eks, "UntagResource", map[string]any{"resourceArn": name, "tagKeys": anys(removed)})
		return err
	})
}

// retags is an update of nothing but tags.
func (k kind) retags(ctx context.Context, j *job) (bool, error) { return both(ctx, j, k.retag) }

// removeAddon deletes an add-on, and leaves its objects if the template says so.
func removeAddon(ctx context.Context, j *job) (bool, error) {
	members := addons.of(j)
	if preserve, ok := j.is["PreserveOnDelete"]; ok {
		members["preserve"] = preserve
	}
	return addons.remove(ctx, j, "DeleteAddon", members)
}

func updateAddon(ctx context.Context, j *job) (bool, error) {
	changed, _ := j.of.Changes(j.was, j.is)
	members := map[string]any{}
	for _, name := range []string{"AddonVersion", "ConfigurationValues", "PodIdentityAssociations", "ServiceAccountRoleArn"} {
		if value, ok := j.is[name]; ok && slices.Contains(changed, name) {
			members[name] = value
		}
	}
	if len(members) > 0 {
		if value, ok := j.is["ResolveConflicts"]; ok {
			members["ResolveConflicts"] = value
		}
		if done, err := addons.step(ctx, j, "addon", "UpdateAddon", members); err != nil || !done {
			return false, err
		}
	}
	return addons.retags(ctx, j)
}
