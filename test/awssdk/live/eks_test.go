// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
)

// trust is the trust policy of a cluster's role.
const trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"eks.amazonaws.com"},"Action":["sts:AssumeRole","sts:TagSession"]}]}`

const patience = 3 * time.Minute

func eksActions() []action {
	cluster, group := aws.String(madeup), aws.String("web")
	bob := aws.String("arn:aws:iam::" + account + ":user/live-bob")
	view := aws.String("arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy")
	createCluster := func(w *world) *eks.CreateClusterInput {
		return &eks.CreateClusterInput{
			Name: cluster, RoleArn: aws.String(w.notes["role"]), ClientRequestToken: aws.String("live-cluster"), Tags: map[string]string{"team": "a"},
			ResourcesVpcConfig: &types.VpcConfigRequest{SubnetIds: w.subnets},
			AccessConfig:       &types.CreateAccessConfigRequest{AuthenticationMode: types.AuthenticationModeApi},
		}
	}
	return []action{
		{"DescribeClusterVersions", func(w *world) {
			out := need(w.eks.DescribeClusterVersions(w.ctx(), &eks.DescribeClusterVersionsInput{}))
			w.has(out, "ClusterVersions[].ClusterVersion", "ClusterVersions[].DefaultPlatformVersion", "ClusterVersions[].Status")
			first := need(w.eks.DescribeClusterVersions(w.ctx(), &eks.DescribeClusterVersionsInput{DefaultOnly: aws.Bool(true)}))
			if len(first.ClusterVersions) != 1 {
				w.Fatalf("%d versions are the default", len(first.ClusterVersions))
			}
			w.notes["version"] = *first.ClusterVersions[0].ClusterVersion // of which the programs are there
		}},
		{"CreateCluster", func(w *world) {
			role := need(w.iam.CreateRole(w.ctx(), &iam.CreateRoleInput{RoleName: aws.String("live-eks"), AssumeRolePolicyDocument: aws.String(trust)})).Role
			w.notes["role"] = *role.Arn
			_, err := w.eks.CreateCluster(w.ctx(), createCluster(w))
			w.refused("InvalidParameterException", err) // the role has no policy
			need(w.iam.AttachRolePolicy(w.ctx(), &iam.AttachRolePolicyInput{RoleName: role.RoleName, PolicyArn: aws.String("arn:aws:iam::aws:policy/AmazonEKSClusterPolicy")}))
			made := need(w.eks.CreateCluster(w.ctx(), createCluster(w)))
			w.has(made, "Cluster.Name", "Cluster.Arn", "Cluster.Status")
			again := need(w.eks.CreateCluster(w.ctx(), createCluster(w)))
			if *made.Cluster.Arn != *again.Cluster.Arn || !made.Cluster.CreatedAt.Equal(*again.Cluster.CreatedAt) {
				w.Errorf("made %+v, and sent again %+v", made.Cluster, again.Cluster)
			}
			other := createCluster(w)
			other.ClientRequestToken = aws.String("another")
			_, err = w.eks.CreateCluster(w.ctx(), other)
			w.refused("ResourceInUseException", err)
		}},
		{"DescribeCluster", func(w *world) {
			must(eks.NewClusterActiveWaiter(w.eks, func(o *eks.ClusterActiveWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, time.Second }).
				Wait(w.ctx(), &eks.DescribeClusterInput{Name: cluster}, patience))
			out := need(w.eks.DescribeCluster(w.ctx(), &eks.DescribeClusterInput{Name: cluster}))
			w.has(
				out, "Cluster.Arn", "Cluster.Name", "Cluster.Status", "Cluster.Version", "Cluster.PlatformVersion", "Cluster.Endpoint", "Cluster.CertificateAuthority.Data",
				"Cluster.CreatedAt", "Cluster.RoleArn", "Cluster.Identity.Oidc.Issuer", "Cluster.AccessConfig.AuthenticationMode", "Cluster.ResourcesVpcConfig.VpcId",
				"Cluster.ResourcesVpcConfig.SubnetIds", "Cluster.KubernetesNetworkConfig.IpFamily", "Cluster.KubernetesNetworkConfig.ServiceIpv4Cidr",
				"Cluster.Logging.ClusterLogging[].Types", "Cluster.UpgradePolicy.SupportType", "Cluster.DeletionProtection", "Cluster.Tags",
			)
			_, err := w.eks.DescribeCluster(w.ctx(), &eks.DescribeClusterInput{Name: aws.String("none")})
			w.refused("ResourceNotFoundException", err)
			w.notes["arn"] = *out.Cluster.Arn
		}},
		{"ListClusters", func(w *world) {
			var names []string
			for pages := eks.NewListClustersPaginator(w.eks, &eks.ListClustersInput{MaxResults: aws.Int32(1)}); pages.HasMorePages(); {
				names = append(names, need(pages.NextPage(w.ctx())).Clusters...)
			}
			if fmt.Sprint(names) != "[live muster]" {
				w.Errorf("clusters %v", names)
			}
		}},
		{"TagResource", func(w *world) {
			need(w.eks.TagResource(w.ctx(), &eks.TagResourceInput{ResourceArn: aws.String(w.notes["arn"]), Tags: map[string]string{"stage": "x", "other": "y"}}))
		}},
		{"UntagResource", func(w *world) {
			need(w.eks.UntagResource(w.ctx(), &eks.UntagResourceInput{ResourceArn: aws.String(w.notes["arn"]), TagKeys: []string{"other"}}))
		}},
		{"ListTagsForResource", func(w *world) {
			out := need(w.eks.ListTagsForResource(w.ctx(), &eks.ListTagsForResourceInput{ResourceArn: aws.String(w.notes["arn"])}))
			if fmt.Sprint(out.Tags) != "map[stage:x team:a]" {
				w.Errorf("tags %v", out.Tags)
			}
		}},
		{"UpdateClusterConfig", func(w *world) {
			out := need(w.eks.UpdateClusterConfig(w.ctx(), &eks.UpdateClusterConfigInput{Name: cluster, DeletionProtection: aws.Bool(true)}))
			w.has(out, "Update.Id", "Update.Status", "Update.Type")
			w.notes["update"] = *out.Update.Id
		}},
		{"DescribeUpdate", func(w *world) {
			w.updated(w.notes["update"], "")
			if shown := need(w.eks.DescribeCluster(w.ctx(), &eks.DescribeClusterInput{Name: cluster})).Cluster; !aws.ToBool(shown.DeletionProtection) {
				w.Error("the cluster is not protected")
			}
			_, err := w.eks.DeleteCluster(w.ctx(), &eks.DeleteClusterInput{Name: cluster})
			w.refused("InvalidRequestException", err)
			off := need(w.eks.UpdateClusterConfig(w.ctx(), &eks.UpdateClusterConfigInput{Name: cluster, DeletionProtection: aws.Bool(false)}))
			w.updated(*off.Update.Id, "")
		}},
		{"ListUpdates", func(w *world) {
			if out := need(w.eks.ListUpdates(w.ctx(), &eks.ListUpdatesInput{Name: cluster})); len(out.UpdateIds) != 2 || out.UpdateIds[1] != w.notes["update"] {
				w.Errorf("updates %v, of which the older one is %s", out.UpdateIds, w.notes["update"])
			}
		}},
		{"CreateNodegroup", func(w *world) {
			out := need(w.eks.CreateNodegroup(w.ctx(), &eks.CreateNodegroupInput{
				ClusterName: cluster, NodegroupName: group, NodeRole: aws.String("arn:aws:iam::" + account + ":role/muster-node"), Subnets: w.subnets[:1],
				ScalingConfig: &types.NodegroupScalingConfig{MinSize: aws.Int32(0), MaxSize: aws.Int32(2), DesiredSize: aws.Int32(0)}, Labels: map[string]string{"pool": "web"},
			}))
			w.has(out, "Nodegroup.NodegroupName", "Nodegroup.NodegroupArn", "Nodegroup.Status")
		}},
		{"DescribeNodegroup", func(w *world) {
			must(eks.NewNodegroupActiveWaiter(w.eks, func(o *eks.NodegroupActiveWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, time.Second }).
				Wait(w.ctx(), &eks.DescribeNodegroupInput{ClusterName: cluster, NodegroupName: group}, patience))
			out := need(w.eks.DescribeNodegroup(w.ctx(), &eks.DescribeNodegroupInput{ClusterName: cluster, NodegroupName: group}))
			w.has(
				out, "Nodegroup.NodegroupName", "Nodegroup.NodegroupArn", "Nodegroup.ClusterName", "Nodegroup.Version", "Nodegroup.CreatedAt",
				"Nodegroup.Status", "Nodegroup.CapacityType", "Nodegroup.ScalingConfig.MinSize", "Nodegroup.ScalingConfig.MaxSize", "Nodegroup.ScalingConfig.DesiredSize",
				"Nodegroup.InstanceTypes", "Nodegroup.Subnets", "Nodegroup.AmiType", "Nodegroup.NodeRole", "Nodegroup.Labels",
				"Nodegroup.UpdateConfig.MaxUnavailable",
			)
		}},
		{"ListNodegroups", func(w *world) {
			if out := need(w.eks.ListNodegroups(w.ctx(), &eks.ListNodegroupsInput{ClusterName: cluster})); fmt.Sprint(out.Nodegroups) != "[web]" {
				w.Errorf("node groups %v", out.Nodegroups)
			}
		}},
		{"UpdateNodegroupConfig", func(w *world) {
			out := need(w.eks.UpdateNodegroupConfig(w.ctx(), &eks.UpdateNodegroupConfigInput{
				ClusterName: cluster, NodegroupName: group, ScalingConfig: &types.NodegroupScalingConfig{MinSize: aws.Int32(0), MaxSize: aws.Int32(3), DesiredSize: aws.Int32(0)},
			}))
			w.updated(*out.Update.Id, *group)
			if shown := need(w.eks.DescribeNodegroup(w.ctx(), &eks.DescribeNodegroupInput{ClusterName: cluster, NodegroupName: group})); *shown.Nodegroup.ScalingConfig.MaxSize != 3 {
				w.Errorf("%+v", shown.Nodegroup.ScalingConfig)
			}
		}},
		{"CreateAccessEntry", func(w *world) {
			need(w.iam.CreateUser(w.ctx(), &iam.CreateUserInput{UserName: aws.String("live-bob")}))
			w.has(need(w.eks.CreateAccessEntry(w.ctx(), &eks.CreateAccessEntryInput{ClusterName: cluster, PrincipalArn: bob, Tags: map[string]string{"team": "b"}})), "AccessEntry.PrincipalArn")
			_, err := w.eks.CreateAccessEntry(w.ctx(), &eks.CreateAccessEntryInput{ClusterName: cluster, PrincipalArn: bob})
			w.refused("ResourceInUseException", err)
		}},
		{"UpdateAccessEntry", func(w *world) {
			need(w.eks.UpdateAccessEntry(w.ctx(), &eks.UpdateAccessEntryInput{ClusterName: cluster, PrincipalArn: bob, KubernetesGroups: []string{"viewers"}}))
		}},
		{"DescribeAccessEntry", func(w *world) {
			out := need(w.eks.DescribeAccessEntry(w.ctx(), &eks.DescribeAccessEntryInput{ClusterName: cluster, PrincipalArn: bob}))
			w.has(out, "AccessEntry.AccessEntryArn", "AccessEntry.PrincipalArn", "AccessEntry.CreatedAt", "AccessEntry.ModifiedAt", "AccessEntry.KubernetesGroups", "AccessEntry.Username", "AccessEntry.Type", "AccessEntry.Tags")
			if got := strings.Join(out.AccessEntry.KubernetesGroups, ","); got != "viewers" {
				w.Errorf("groups %s", got)
			}
		}},
		{"ListAccessPolicies", func(w *world) {
			w.has(need(w.eks.ListAccessPolicies(w.ctx(), &eks.ListAccessPoliciesInput{})), "AccessPolicies[].Name", "AccessPolicies[].Arn")
		}},
		{"AssociateAccessPolicy", func(w *world) {
			w.has(need(w.eks.AssociateAccessPolicy(w.ctx(), &eks.AssociateAccessPolicyInput{
				ClusterName: cluster, PrincipalArn: bob, PolicyArn: view, AccessScope: &types.AccessScope{Type: types.AccessScopeTypeNamespace, Namespaces: []string{"default"}},
			})), "AssociatedAccessPolicy.PolicyArn")
		}},
		{"ListAssociatedAccessPolicies", func(w *world) {
			out := need(w.eks.ListAssociatedAccessPolicies(w.ctx(), &eks.ListAssociatedAccessPoliciesInput{ClusterName: cluster, PrincipalArn: bob}))
			w.has(out, "AssociatedAccessPolicies[].PolicyArn", "AssociatedAccessPolicies[].AccessScope.Type", "AssociatedAccessPolicies[].AccessScope.Namespaces", "AssociatedAccessPolicies[].AssociatedAt", "AssociatedAccessPolicies[].ModifiedAt")
		}},
		{"ListAccessEntries", func(w *world) {
			out := need(w.eks.ListAccessEntries(w.ctx(), &eks.ListAccessEntriesInput{ClusterName: cluster, AssociatedPolicyArn: view}))
			if fmt.Sprint(out.AccessEntries) != "["+*bob+"]" {
				w.Errorf("access entries %v", out.AccessEntries)
			}
		}},
		{"DisassociateAccessPolicy", func(w *world) {
			need(w.eks.DisassociateAccessPolicy(w.ctx(), &eks.DisassociateAccessPolicyInput{ClusterName: cluster, PrincipalArn: bob, PolicyArn: view}))
			if out := need(w.eks.ListAssociatedAccessPolicies(w.ctx(), &eks.ListAssociatedAccessPoliciesInput{ClusterName: cluster, PrincipalArn: bob})); len(out.AssociatedAccessPolicies) != 0 {
				w.Errorf("%+v", out.AssociatedAccessPolicies)
			}
		}},
		{"DeleteAccessEntry", func(w *world) {
			need(w.eks.DeleteAccessEntry(w.ctx(), &eks.DeleteAccessEntryInput{ClusterName: cluster, PrincipalArn: bob}))
			_, err := w.eks.DescribeAccessEntry(w.ctx(), &eks.DescribeAccessEntryInput{ClusterName: cluster, PrincipalArn: bob})
			w.refused("ResourceNotFoundException", err)
			need(w.iam.DeleteUser(w.ctx(), &iam.DeleteUserInput{UserName: aws.String("live-bob")}))
		}},
		{"CreatePodIdentityAssociation", func(w *world) {
			pods := need(w.iam.CreateRole(w.ctx(), &iam.CreateRoleInput{RoleName: aws.String("live-pods"), AssumeRolePolicyDocument: aws.String(strings.Replace(trust, "eks.", "pods.eks.", 1))})).Role
			out := need(w.eks.CreatePodIdentityAssociation(w.ctx(), &eks.CreatePodIdentityAssociationInput{
				ClusterName: cluster, Namespace: aws.String("default"), ServiceAccount: aws.String("web"), RoleArn: pods.Arn, Tags: map[string]string{"team": "a"},
			}))
			w.has(out, "Association.AssociationId", "Association.AssociationArn")
			w.notes["association"] = *out.Association.AssociationId
		}},
		{"ListPodIdentityAssociations", func(w *world) {
			out := need(w.eks.ListPodIdentityAssociations(w.ctx(), &eks.ListPodIdentityAssociationsInput{ClusterName: cluster, Namespace: aws.String("default")}))
			w.has(out, "Associations[].AssociationId", "Associations[].AssociationArn", "Associations[].ClusterName", "Associations[].Namespace", "Associations[].ServiceAccount")
		}},
		{"UpdatePodIdentityAssociation", func(w *world) {
			need(w.eks.UpdatePodIdentityAssociation(w.ctx(), &eks.UpdatePodIdentityAssociationInput{
				ClusterName: cluster, AssociationId: aws.String(w.notes["association"]), DisableSessionTags: aws.Bool(true),
			}))
		}},
		{"DescribePodIdentityAssociation", func(w *world) {
			out := need(w.eks.DescribePodIdentityAssociation(w.ctx(), &eks.DescribePodIdentityAssociationInput{ClusterName: cluster, AssociationId: aws.String(w.notes["association"])}))
			w.has(
				out, "Association.AssociationId", "Association.AssociationArn", "Association.ClusterName", "Association.Namespace", "Association.ServiceAccount", "Association.RoleArn",
				"Association.Tags", "Association.CreatedAt", "Association.ModifiedAt",
			)
			if !aws.ToBool(out.Association.DisableSessionTags) {
				w.Errorf("%+v", out.Association)
			}
		}},
		{"DeletePodIdentityAssociation", func(w *world) {
			id := aws.String(w.notes["association"])
			need(w.eks.DeletePodIdentityAssociation(w.ctx(), &eks.DeletePodIdentityAssociationInput{ClusterName: cluster, AssociationId: id}))
			_, err := w.eks.DescribePodIdentityAssociation(w.ctx(), &eks.DescribePodIdentityAssociationInput{ClusterName: cluster, AssociationId: id})
			w.refused("ResourceNotFoundException", err)
			need(w.iam.DeleteRole(w.ctx(), &iam.DeleteRoleInput{RoleName: aws.String("live-pods")}))
		}},
	}
}

// goneActions delete what eksActions made.
func goneActions() []action {
	cluster, group := aws.String(madeup), aws.String("web")
	return []action{
		{"DeleteNodegroup", func(w *world) {
			_, err := w.eks.DeleteCluster(w.ctx(), &eks.DeleteClusterInput{Name: cluster})
			w.refused("ResourceInUseException", err)
			need(w.eks.DeleteNodegroup(w.ctx(), &eks.DeleteNodegroupInput{ClusterName: cluster, NodegroupName: group}))
			must(eks.NewNodegroupDeletedWaiter(w.eks, func(o *eks.NodegroupDeletedWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, time.Second }).
				Wait(w.ctx(), &eks.DescribeNodegroupInput{ClusterName: cluster, NodegroupName: group}, patience))
		}},
		{"DeleteCluster", func(w *world) {
			w.has(need(w.eks.DeleteCluster(w.ctx(), &eks.DeleteClusterInput{Name: cluster})), "Cluster.Name", "Cluster.Status")
			must(eks.NewClusterDeletedWaiter(w.eks, func(o *eks.ClusterDeletedWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, time.Second }).
				Wait(w.ctx(), &eks.DescribeClusterInput{Name: cluster}, patience))
			role := aws.String("live-eks")
			need(w.iam.DetachRolePolicy(w.ctx(), &iam.DetachRolePolicyInput{RoleName: role, PolicyArn: aws.String("arn:aws:iam::aws:policy/AmazonEKSClusterPolicy")}))
			need(w.iam.DeleteRole(w.ctx(), &iam.DeleteRoleInput{RoleName: role}))
		}},
	}
}

// updated waits until an update of the cluster, or of a node group of it, is Successful.
func (w *world) updated(id, group string) {
	w.Helper()
	input := &eks.DescribeUpdateInput{Name: aws.String(madeup), UpdateId: &id}
	if group != "" {
		input.NodegroupName = &group
	}
	w.eventually(patience, func() error {
		out := need(w.eks.DescribeUpdate(w.ctx(), input))
		w.has(out, "Update.Id", "Update.Status", "Update.Type", "Update.CreatedAt", "Update.Params[].Type", "Update.Params[].Value")
		switch out.Update.Status {
		case types.UpdateStatusSuccessful:
			return nil
		case types.UpdateStatusFailed, types.UpdateStatusCancelled:
			w.Fatalf("update %s is %s: %+v", id, out.Update.Status, out.Update.Errors)
		case types.UpdateStatusInProgress:
		}
		return fmt.Errorf("update %s is %s", id, out.Update.Status)
	})
}
