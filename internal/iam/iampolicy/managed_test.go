// SPDX-License-Identifier: Apache-2.0

package iampolicy_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

func TestAWSManaged(t *testing.T) {
	seen, arns := map[string]bool{}, map[string]string{}
	for _, p := range iampolicy.AWSManaged() {
		text, ok := p.Document()
		if !ok || !iam.IsID(iam.PolicyPrefix, p.ID) || seen[p.ID] || iam.CheckPolicyName(p.Name) != nil || iam.CheckDescription(p.Description) != nil {
			t.Errorf("%+v", p)
		}
		seen[p.ID] = true
		parse(t, iampolicy.Managed, text)
		arns[p.ARN().String()] = text
	}
	for _, want := range []string{ // policies that guides to EKS attach, and those of a cluster's control plane
		"AdministratorAccess", "IAMFullAccess", "IAMReadOnlyAccess", "ReadOnlyAccess",
		"AmazonEKSBlockStoragePolicy", "AmazonEKSClusterPolicy", "AmazonEKSComputePolicy", "AmazonEKSLoadBalancingPolicy", "AmazonEKSNetworkingPolicy",
		"AmazonEKSFargatePodExecutionRolePolicy", "AmazonEKSServicePolicy", "AmazonEKSVPCResourceController", "AmazonEKS_CNI_Policy",
		"AmazonEKSWorkerNodeMinimalPolicy", "AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonEC2ContainerRegistryReadOnly",
		"AmazonS3ReadOnlyAccess", "AmazonSSMManagedInstanceCore", "CloudWatchAgentServerPolicy", "service-role/AmazonEBSCSIDriverPolicy", "service-role/AmazonEFSCSIDriverPolicy",
		"AmazonEKSLocalOutpostClusterPolicy", "AmazonEKSDashboardConsoleReadOnly", "AmazonEKSMCPReadOnlyAccess",
		"aws-service-role/AmazonEKSServiceRolePolicy", "aws-service-role/AWSServiceRoleForAmazonEKSNodegroup", "aws-service-role/AmazonEKSForFargateServiceRolePolicy",
		"aws-service-role/AmazonEKSConnectorServiceRolePolicy", "aws-service-role/AmazonEKSDashboardServiceRolePolicy", "aws-service-role/AmazonEKSLocalOutpostServiceRolePolicy",
	} {
		if arns["arn:aws:iam::aws:policy/"+want] == "" {
			t.Error("there is no", want)
		}
	}
	for _, service := range iam.LinkedServices() {
		if arns[service.Policy] == "" {
			t.Errorf("the policy of %s, %s, is not there", service.Role, service.Policy)
		}
	}
	for name, allowed := range map[string]map[string]bool{
		"AmazonEKSWorkerNodeMinimalPolicy":            {"eks-auth:AssumeRoleForPodIdentity": true, "ec2:DescribeInstances": false},
		"AmazonEKSWorkerNodePolicy":                   {"ec2:DescribeInstances": true, "ec2:RunInstances": false},
		"AmazonEKSVPCResourceController":              {"ec2:AssignPrivateIpAddresses": true, "ec2:TerminateInstances": false},
		"AmazonEKSFargatePodExecutionRolePolicy":      {"ecr:BatchGetImage": true, "ecr:PutImage": false},
		"AmazonSSMManagedInstanceCore":                {"ssm:UpdateInstanceInformation": true, "ssm:SendCommand": false},
		"AmazonS3ReadOnlyAccess":                      {"s3:GetObject": true, "s3:PutObject": false},
		"ReadOnlyAccess":                              {"iam:GetRole": true, "iam:PassRole": false, "sts:AssumeRole": false, "eks:CreateCluster": false},
		"service-role/AmazonEBSCSIDriverPolicy":       {"ec2:DescribeVolumes": true, "ec2:DeleteVolume": false}, // the latter for its own alone
		"AmazonEKSComputePolicy":                      {"iam:AddRoleToInstanceProfile": false},                  // to those that begin with eks alone
		"aws-service-role/AmazonEKSServiceRolePolicy": {"ec2:CreateNetworkInterface": true, "iam:PassRole": false},
	} {
		document := parse(t, iampolicy.Managed, arns["arn:aws:iam::aws:policy/"+name])
		for action, want := range allowed {
			got := document.Evaluate(iampolicy.Request{Caller: alice(t), Action: action, Resource: "*", Context: iampolicy.NewContext(alice(t), iampolicy.Facts{})})
			if (got.Verdict == iampolicy.Allow) != want {
				t.Errorf("%s: %s is %+v", name, action, got)
			}
		}
	}
	total := map[string]string{"a": strings.Repeat("x ", 1024), "b": strings.Repeat("x", 1024)}
	if err := iampolicy.CheckTotal(iampolicy.UserInline, total); err != nil {
		t.Error(err)
	}
	total["c"] = "x"
	if err := iampolicy.CheckTotal(iampolicy.UserInline, total); err == nil {
		t.Error("inline policies may be larger than the limit")
	}
}
