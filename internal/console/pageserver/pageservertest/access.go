// SPDX-License-Identifier: Apache-2.0

package pageservertest

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/iam/identity"
)

const arnOfIAM = "arn:aws:iam::000000000000:"

// access adds who gets into the clusters, who was refused, and tokens.
func access(f *view.Facts) {
	of := f.Of[home]
	of.Access = view.ClusterAccess{
		Mode: identity.ModeAPIAndConfigMap,
		Grants: []view.Grant{
			{
				Grant: identity.Grant{
					Source: identity.SourceAccessEntry, Entry: "alice", Principal: arnOfIAM + "user/alice", PrincipalID: "AIDAEXAMPLEEXAMPLE123", User: arnOfIAM + "user/alice",
					Groups: []string{"viewers", "muster:access-entry:alice"}, Used: true,
				},
				Policies: []view.Policy{{Name: "AmazonEKSEditPolicy", ClusterRole: "edit", Namespaces: []string{"team-*", "shop"}}, {Name: "AmazonEKSViewPolicy", ClusterRole: "view"}, {Name: "AmazonEKSHybridPolicy"}},
				Created:  Noon.Add(-26 * time.Hour),
			},
			{
				Grant:   identity.Grant{Source: identity.SourceAccessEntry, Entry: "muster-node-home", Principal: arnOfIAM + "role/muster-node-home", PrincipalID: "AROAEXAMPLEEXAMPLE123", User: "system:node:{{EC2PrivateDNSName}}", Groups: []string{"system:nodes"}, InstanceOnly: true, Used: true},
				Created: Noon.Add(-2 * time.Hour),
			},
			{Grant: identity.Grant{Source: identity.SourceAWSAuth, Entry: "mapUsers[0]", Principal: arnOfIAM + "user/alice", User: "alice", Groups: []string{"system:masters"}, Used: true, After: "AccessEntry alice"}},
			{Grant: identity.Grant{Source: identity.SourceAWSAuth, Entry: "mapRoles[1]", Principal: arnOfIAM + "instance-profile/nodes", User: "system:node:{{EC2PrivateDNSName}}", Groups: []string{"system:nodes"}, InstanceOnly: true}},
			{Grant: identity.Grant{Source: identity.SourceAWSAuth, Entry: "mapAccounts[0]", Principal: "every principal of account 111122223333", Used: true}},
		},
		Problems: []identity.Problem{
			{Source: identity.SourceAccessEntry, Entry: "alice", Field: "spec.accessPolicies", Saw: "has one that is not applied: AmazonEKSHybridPolicy is for nodes", Fix: "remove it, or choose another"},
			{Source: identity.SourceAWSAuth, Entry: "mapRoles[1]", Field: "rolearn", Saw: "is the ARN of an instance profile", Fix: "give that of the role in it", Unused: true},
			{Source: identity.SourceAWSAuth, Field: "maproles", Saw: "is not read", Fix: "write mapRoles", Unused: true},
		},
		Notes: []string{"AccessEntry bob is being deleted, and maps nobody."},
		Tokens: []view.Token{
			{
				Cluster: home, ID: "abcdef", Created: Noon.Add(-10 * time.Minute), Expires: Noon.Add(5*time.Minute + 30*time.Second), Usages: []string{"authentication"},
				BoundTo: []view.Bound{{Kind: "machine", Value: Joining}}, UsedBy: []view.Use{}, Description: "Lets machine " + Joining + " join, and no other.",
			},
			{
				Cluster: home, ID: "ghijkl", Created: Noon.Add(-3 * time.Hour), Usages: []string{"authentication", "signing"}, BoundTo: []view.Bound{},
				UsedBy: []view.Use{{Node: "ip-172-31-0-5.ec2.internal", Time: Noon.Add(-time.Hour), Request: "csr-cli00000"}},
			},
			{Cluster: home, ID: "mnopqr", Created: Noon.Add(-3 * time.Hour), Expires: Noon.Add(-time.Minute), Usages: []string{"signing"}, BoundTo: []view.Bound{}, UsedBy: []view.Use{}},
		},
	}
	f.Of[home] = of
	other := f.Of[staging]
	other.Access = view.ClusterAccess{Mode: identity.ModeConfigMap, Notes: []string{"The cluster has no ConfigMap kube-system/aws-auth."}}
	f.Of[staging] = other
	f.Refusals = []view.Refusal{
		{
			Time: Noon.Add(-20 * time.Second), By: "authenticator", Cluster: home, Principal: "arn:aws:sts::000000000000:assumed-role/muster-node-home/" + Refused, AccessKeyID: "ASIAEXAMPLEEXAMPLE12", Machine: Refused,
			Rule: "no-entry", Cause: "M-IAM-01", Saw: "no entry names " + arnOfIAM + "role/muster-node-home", Fix: "make an access entry for it, or add it to aws-auth (" + arnOfIAM + "role/muster-node-home)", Count: 1212,
		},
		{Time: Noon.Add(-4 * time.Minute), By: "authenticator", Cluster: home, AccessKeyID: "AKIAEXAMPLEEXAMPLE12", Rule: "signature/SignatureDoesNotMatch", Cause: "M-IAM-07", Saw: "it is signed for another cluster", Fix: "make the token with --cluster-name home", Count: 1},
		{
			Time: Noon.Add(-time.Hour), By: "sts", Principal: arnOfIAM + "user/bob", AccessKeyID: "AKIAEXAMPLEEXAMPLE13", Action: "sts:AssumeRole", Resource: arnOfIAM + "role/deploy", Rule: "AccessDenied",
			Saw: "User: " + arnOfIAM + "user/bob is not authorized to perform: sts:AssumeRole on resource: " + arnOfIAM + "role/deploy because no identity-based policy allows the sts:AssumeRole action", From: "127.0.0.1", Count: 2,
		},
	}
	a := v1alpha1.PodIdentityAssociation{ObjectMeta: metav1.ObjectMeta{Name: "a-0123456789abcdefg", Namespace: home}}
	a.Spec = v1alpha1.PodIdentityAssociationSpec{ClusterName: home, Namespace: "shop", ServiceAccount: "web", RoleARN: arnOfIAM + "role/shop/web", TargetRoleARN: "arn:aws:iam::111122223333:role/data"}
	f.Associations = []v1alpha1.PodIdentityAssociation{a}
}

// hostileAccess has all that a user or a stranger writes be Evil.
func hostileAccess(f *view.Facts) {
	const secret = Evil + " password=hunter2hunter2"
	of := f.Of[home]
	g := &of.Access.Grants[0]
	g.Entry, g.Principal, g.PrincipalID, g.User, g.Groups, g.After, g.Source = Evil, Evil, Evil, Evil, []string{Evil}, Evil, Evil
	g.Policies = []view.Policy{{Name: Evil, ClusterRole: Evil, Namespaces: []string{Evil}}}
	of.Access.Mode, of.Access.Notes = Evil, []string{secret}
	of.Access.Problems = []identity.Problem{{Source: Evil, Entry: Evil, Field: Evil, Saw: secret, Fix: secret}, {Source: "another", Entry: Evil, Field: Evil, Saw: secret, Fix: secret}}
	t := &of.Access.Tokens[0]
	t.ID, t.Description, t.BoundTo, t.UsedBy = Evil, secret, []view.Bound{{Kind: Evil, Value: Evil}, {Kind: "machine", Value: Evil}}, []view.Use{{Node: Evil, Request: Evil}}
	f.Of[home] = of
	for i := range f.Refusals {
		f.Refusals[i] = view.Refusal{Time: Noon, By: Evil, Cluster: Evil, Principal: "arn:" + Evil, AccessKeyID: Evil, Machine: Evil, Action: Evil, Resource: Evil, Rule: Evil, Cause: Evil, Saw: secret, Fix: secret, From: Evil, Count: i}
	}
	f.Refusals[1].Cluster, f.Refusals[2].Principal = "", ""
	f.Associations[0].Name = Evil
	f.Associations[0].Spec = v1alpha1.PodIdentityAssociationSpec{ClusterName: Evil, Namespace: Evil, ServiceAccount: Evil, RoleARN: Evil, TargetRoleARN: Evil}
}

// manyAccess adds so many entries, refusals, tokens and roles of pods to a cluster.
func manyAccess(f *view.Facts, n int) {
	of := f.Of[home]
	of.Access.Mode = identity.ModeAPI
	f.Refusals, f.Associations = nil, nil
	for i := range n {
		role := fmt.Sprintf("%srole/team-%04d", arnOfIAM, i)
		of.Access.Grants = append(of.Access.Grants, view.Grant{Grant: identity.Grant{Source: identity.SourceAccessEntry, Entry: fmt.Sprintf("team-%04d", i), Principal: role, User: role, Used: true}})
		of.Access.Tokens = append(of.Access.Tokens, view.Token{Cluster: home, ID: fmt.Sprintf("%06d", i), Usages: []string{"authentication"}, Expires: Noon.Add(time.Hour)})
		f.Refusals = append(f.Refusals, view.Refusal{Time: Noon.Add(-time.Duration(i) * time.Second), By: "iam", Principal: role, Action: "iam:GetRole", Rule: "AccessDenied", Count: 1})
		a := v1alpha1.PodIdentityAssociation{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("a-%017d", i)}}
		a.Spec.ClusterName, a.Spec.Namespace, a.Spec.ServiceAccount, a.Spec.RoleARN = home, "shop", fmt.Sprintf("web-%04d", i), role
		f.Associations = append(f.Associations, a)
	}
	f.Of[home] = of
}
