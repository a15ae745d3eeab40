// SPDX-License-Identifier: Apache-2.0

package karpentercontroller

import (
	"testing"

	"muster.dev/muster/internal/iam/iampolicy"
)

// Karpenter's role reaches the machines, the role and the network of its cluster, and those of no other.
func TestPolicyReachesNoOtherCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text, err := policy(w.Plane, account, "arn:aws:iam::"+account+":role/nodes")
	if err != nil {
		t.Fatal(err)
	}
	document, err := iampolicy.Parse(iampolicy.RoleInline, text)
	if err != nil {
		t.Fatal(err)
	}
	const ec2 = "arn:aws:ec2:eu-west-1:" + account + ":"
	own := "vpc/" + w.Plane.Network.VPCID
	for name, c := range map[string]struct {
		action, resource string
		context          map[string][]string
		allowed          bool
	}{
		"ends its machine":           {"ec2:TerminateInstances", ec2 + "instance/i-1", map[string][]string{"aws:ResourceTag/kubernetes.io/cluster/blue": {"owned"}, "aws:ResourceTag/karpenter.sh/nodepool": {"x"}}, true},
		"another cluster's machine":  {"ec2:TerminateInstances", ec2 + "instance/i-1", map[string][]string{"aws:ResourceTag/kubernetes.io/cluster/green": {"owned"}, "aws:ResourceTag/karpenter.sh/nodepool": {"x"}}, false},
		"a node group's machine":     {"ec2:TerminateInstances", ec2 + "instance/i-1", map[string][]string{"aws:ResourceTag/kubernetes.io/cluster/blue": {"owned"}}, false},
		"a machine without tags":     {"ec2:TerminateInstances", ec2 + "instance/i-1", nil, false},
		"tags another's machine":     {"ec2:CreateTags", ec2 + "instance/i-1", map[string][]string{"aws:ResourceTag/kubernetes.io/cluster/green": {"owned"}, "aws:RequestTag/kubernetes.io/cluster/blue": {"owned"}}, false},
		"launches in its VPC":        {"ec2:CreateFleet", ec2 + "subnet/subnet-1", map[string][]string{"ec2:Vpc": {ec2 + own}}, true},
		"launches in another VPC":    {"ec2:CreateFleet", ec2 + "subnet/subnet-1", map[string][]string{"ec2:Vpc": {ec2 + "vpc/vpc-00000000000000001"}}, false},
		"a group of another VPC":     {"ec2:RunInstances", ec2 + "security-group/sg-1", map[string][]string{"ec2:Vpc": {ec2 + "vpc/vpc-00000000000000001"}}, false},
		"launches with its tags":     {"ec2:CreateFleet", ec2 + "instance/*", map[string][]string{"aws:RequestTag/kubernetes.io/cluster/blue": {"owned"}, "aws:RequestTag/eks:eks-cluster-name": {"blue"}, "aws:RequestTag/karpenter.sh/nodepool": {"x"}}, true},
		"launches for another":       {"ec2:CreateFleet", ec2 + "instance/*", map[string][]string{"aws:RequestTag/kubernetes.io/cluster/green": {"owned"}, "aws:RequestTag/eks:eks-cluster-name": {"green"}, "aws:RequestTag/karpenter.sh/nodepool": {"x"}}, false},
		"passes the node role":       {"iam:PassRole", "arn:aws:iam::" + account + ":role/nodes", map[string][]string{"iam:PassedToService": {"ec2.amazonaws.com"}}, true},
		"passes another role":        {"iam:PassRole", "arn:aws:iam::" + account + ":role/admin", map[string][]string{"iam:PassedToService": {"ec2.amazonaws.com"}}, false},
		"passes it to pods":          {"iam:PassRole", "arn:aws:iam::" + account + ":role/nodes", map[string][]string{"iam:PassedToService": {"pods.eks.amazonaws.com"}}, false},
		"describes another cluster":  {"eks:DescribeCluster", "arn:aws:eks:eu-west-1:" + account + ":cluster/green", nil, false},
		"hears from its queue":       {"sqs:ReceiveMessage", "arn:aws:sqs:eu-west-1:" + account + ":muster-karpenter-blue", nil, true},
		"sends to its queue":         {"sqs:SendMessage", "arn:aws:sqs:eu-west-1:" + account + ":muster-karpenter-blue", nil, false},
		"hears from another queue":   {"sqs:ReceiveMessage", "arn:aws:sqs:eu-west-1:" + account + ":muster-karpenter-green", nil, false},
		"asks about zonal shifts":    {"arc-zonal-shift:GetManagedResource", "arn:aws:eks:eu-west-1:" + account + ":cluster/blue", nil, true},
		"of another cluster":         {"arc-zonal-shift:GetManagedResource", "arn:aws:eks:eu-west-1:" + account + ":cluster/green", nil, false},
		"shifts its cluster":         {"arc-zonal-shift:StartZonalShift", "arn:aws:eks:eu-west-1:" + account + ":cluster/blue", nil, false},
		"makes keys":                 {"iam:CreateAccessKey", "arn:aws:iam::" + account + ":user/admin", nil, false},
		"another's instance profile": {"iam:AddRoleToInstanceProfile", "arn:aws:iam::" + account + ":instance-profile/x", map[string][]string{"aws:ResourceTag/kubernetes.io/cluster/green": {"owned"}}, false},
	} {
		got := document.Evaluate(iampolicy.Request{Action: c.action, Resource: c.resource, Context: c.context})
		if (got.Verdict == iampolicy.Allow) != c.allowed {
			t.Errorf("%s: %v (%s), want allowed: %v", name, got.Verdict, got.Reason, c.allowed)
		}
	}
}
