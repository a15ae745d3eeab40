// SPDX-License-Identifier: Apache-2.0

package iampolicy

import (
	"crypto/sha256"
	"encoding/base32"

	"muster.dev/muster/internal/iam"
)

// AWSManaged are the policies that AWS manages and muster knows, by name, with the permissions that matter to what muster serves. They
// are muster's own texts: the actions of services that are not here are left out.
func AWSManaged() []iam.Policy {
	texts := []struct{ name, description, document string }{
		{"AdministratorAccess", "Everything.", allow(`"*"`)},
		{"IAMFullAccess", "All of IAM.", allow(`"iam:*"`)},
		{"IAMReadOnlyAccess", "Reading of IAM.", allow(`["iam:GenerateCredentialReport","iam:GenerateServiceLastAccessedDetails","iam:Get*","iam:List*",` +
			`"iam:SimulateCustomPolicy","iam:SimulatePrincipalPolicy"]`)},
		{"AmazonEKSClusterPolicy", "What a cluster's control plane does with instances and load balancers.", allow(`["ec2:AttachVolume",` +
			`"ec2:AuthorizeSecurityGroupIngress","ec2:CreateRoute","ec2:CreateSecurityGroup","ec2:CreateTags","ec2:CreateVolume",` +
			`"ec2:DeleteRoute","ec2:DeleteSecurityGroup","ec2:DeleteVolume","ec2:Describe*","ec2:DetachVolume","ec2:ModifyInstanceAttribute",` +
			`"ec2:ModifyVolume","ec2:RevokeSecurityGroupIngress","autoscaling:DescribeAutoScalingGroups","autoscaling:UpdateAutoScalingGroup",` +
			`"elasticloadbalancing:*","kms:DescribeKey"]`)},
		{"AmazonEKSServicePolicy", "What the service EKS itself does for a cluster.", allow(`["ec2:CreateNetworkInterface",` +
			`"ec2:CreateNetworkInterfacePermission","ec2:DeleteNetworkInterface","ec2:Describe*","ec2:DetachNetworkInterface",` +
			`"ec2:ModifyNetworkInterfaceAttribute","ec2:CreateTags","eks:UpdateClusterVersion","iam:ListAttachedRolePolicies"]`)},
		{"AmazonEKSWorkerNodePolicy", "What a node needs to find itself and its cluster.", allow(`["ec2:DescribeInstances",` +
			`"ec2:DescribeInstanceTypes","ec2:DescribeRouteTables","ec2:DescribeSecurityGroups","ec2:DescribeSubnets","ec2:DescribeVolumes",` +
			`"ec2:DescribeVolumesModifications","ec2:DescribeVpcs","eks:DescribeCluster","eks-auth:AssumeRoleForPodIdentity"]`)},
		{"AmazonEKS_CNI_Policy", "What the VPC CNI does with the addresses of a node.", allow(`["ec2:AssignPrivateIpAddresses",` +
			`"ec2:AttachNetworkInterface","ec2:CreateNetworkInterface","ec2:CreateTags","ec2:DeleteNetworkInterface","ec2:DescribeInstances",` +
			`"ec2:DescribeInstanceTypes","ec2:DescribeNetworkInterfaces","ec2:DescribeSubnets","ec2:DescribeTags","ec2:DetachNetworkInterface",` +
			`"ec2:ModifyNetworkInterfaceAttribute","ec2:UnassignPrivateIpAddresses"]`)},
		{"AmazonEC2ContainerRegistryReadOnly", "Reading of image registries.", allow(`["ecr:GetAuthorizationToken",` +
			`"ecr:BatchCheckLayerAvailability","ecr:GetDownloadUrlForLayer","ecr:GetRepositoryPolicy","ecr:DescribeRepositories","ecr:ListImages",` +
			`"ecr:DescribeImages","ecr:BatchGetImage"]`)},
		{"AmazonEC2ContainerRegistryPullOnly", "Pulling of images.", allow(`["ecr:GetAuthorizationToken","ecr:BatchCheckLayerAvailability",` +
			`"ecr:GetDownloadUrlForLayer","ecr:BatchGetImage"]`)},
	}
	policies := make([]iam.Policy, 0, len(texts))
	for _, t := range texts {
		policies = append(policies, iam.Policy{
			ID: managedID(t.name), Account: iam.AWSAccount, Path: "/", Name: t.name, Description: t.description, Default: "v1",
			Versions: []iam.PolicyVersion{{ID: "v1", Document: t.document}},
		})
	}
	return policies
}

func allow(actions string) string {
	return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":` + actions + `,"Resource":"*"}]}`
}

// managedID is the same on every installation. It is not AWS's.
func managedID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return string(iam.PolicyPrefix) + base32.StdEncoding.EncodeToString(sum[:])[:17]
}
