// SPDX-License-Identifier: Apache-2.0

package karpenter

import (
	"maps"
	"os"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/iampolicy"
)

// The policy of examples/karpenter lets Karpenter touch the machines of its own NodePools, and gives nobody who writes a
// NodePool or an EC2NodeClass the role, the network or the queue of somebody else.
func TestControllerPolicy(t *testing.T) {
	text, err := os.ReadFile("../../../examples/karpenter/controller-policy.json")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := iampolicy.Parse(iampolicy.RoleInline, string(text))
	if err != nil {
		t.Fatal(err)
	}
	const ec2, iam = "arn:aws:ec2:us-east-1:000000000000:", "arn:aws:iam::000000000000:"
	type facts = map[string]string
	own := facts{"aws:ResourceTag/kubernetes.io/cluster/muster": "owned", "aws:ResourceTag/karpenter.sh/nodepool": "default"}
	others := facts{"aws:ResourceTag/kubernetes.io/cluster/green": "owned", "aws:ResourceTag/karpenter.sh/nodepool": "default"}
	group := facts{"aws:ResourceTag/kubernetes.io/cluster/muster": "owned", "aws:ResourceTag/eks:nodegroup-name": "workers"}
	discovered := facts{"aws:ResourceTag/karpenter.sh/discovery": "muster"}
	made := facts{"aws:RequestTag/kubernetes.io/cluster/muster": "owned", "aws:RequestTag/eks:eks-cluster-name": "muster", "aws:RequestTag/karpenter.sh/nodepool": "default"}
	profile := facts{
		"aws:ResourceTag/kubernetes.io/cluster/muster": "owned", "aws:ResourceTag/topology.kubernetes.io/region": "us-east-1", "aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass": "default",
	}
	for name, c := range map[string]struct {
		action, resource string
		context          facts
		want             bool
	}{
		"ends its machine":                    {"ec2:TerminateInstances", ec2 + "instance/i-1", own, true},
		"ends another cluster's machine":      {"ec2:TerminateInstances", ec2 + "instance/i-1", others, false},
		"ends a node group's machine":         {"ec2:TerminateInstances", ec2 + "instance/i-1", group, false},
		"ends a machine without tags":         {"ec2:TerminateInstances", ec2 + "instance/i-1", nil, false},
		"stops its machine":                   {"ec2:StopInstances", ec2 + "instance/i-1", own, false},
		"takes another cluster's machine":     {"ec2:CreateTags", ec2 + "instance/i-1", merge(others, facts{"aws:TagKeys": "kubernetes.io/cluster/muster"}), false},
		"gives its machine another's tag":     {"ec2:CreateTags", ec2 + "instance/i-1", merge(own, facts{"aws:TagKeys": "kubernetes.io/cluster/green"}), false},
		"names its machine":                   {"ec2:CreateTags", ec2 + "instance/i-1", merge(own, facts{"aws:TagKeys": "Name"}), true},
		"launches a machine of its own":       {"ec2:CreateFleet", ec2 + "instance/*", made, true},
		"launches a machine of nobody":        {"ec2:CreateFleet", ec2 + "instance/*", nil, false},
		"launches by its template":            {"ec2:CreateFleet", ec2 + "launch-template/lt-1", own, true},
		"launches by another's template":      {"ec2:CreateFleet", ec2 + "launch-template/lt-1", others, false},
		"launches in its subnet":              {"ec2:RunInstances", ec2 + "subnet/subnet-1", discovered, true},
		"launches in another's subnet":        {"ec2:RunInstances", ec2 + "subnet/subnet-1", facts{"aws:ResourceTag/karpenter.sh/discovery": "green"}, false},
		"launches in a subnet without tags":   {"ec2:CreateFleet", ec2 + "subnet/subnet-1", nil, false},
		"launches with its group":             {"ec2:CreateFleet", ec2 + "security-group/sg-1", discovered, true},
		"launches with another's group":       {"ec2:CreateFleet", ec2 + "security-group/sg-1", nil, false},
		"passes the role of its machines":     {"iam:PassRole", iam + "role/karpenter-nodes", facts{"iam:PassedToService": "ec2.amazonaws.com"}, true},
		"passes it to another service":        {"iam:PassRole", iam + "role/karpenter-nodes", facts{"iam:PassedToService": "eks.amazonaws.com"}, false},
		"passes another role":                 {"iam:PassRole", iam + "role/admin", facts{"iam:PassedToService": "ec2.amazonaws.com"}, false},
		"fills its instance profile":          {"iam:AddRoleToInstanceProfile", iam + "instance-profile/muster_1", profile, true},
		"fills another's instance profile":    {"iam:AddRoleToInstanceProfile", iam + "instance-profile/green_1", nil, false},
		"reads its queue":                     {"sqs:ReceiveMessage", "arn:aws:sqs:us-east-1:000000000000:interruptions", nil, true},
		"reads another queue":                 {"sqs:ReceiveMessage", "arn:aws:sqs:us-east-1:000000000000:orders", nil, false},
		"sends to its queue":                  {"sqs:SendMessage", "arn:aws:sqs:us-east-1:000000000000:interruptions", nil, false},
		"asks for another cluster's endpoint": {"eks:DescribeCluster", "arn:aws:eks:us-east-1:000000000000:cluster/green", nil, false},
	} {
		caller := iampolicy.Caller{}
		context := iampolicy.NewContext(caller, iampolicy.Facts{Now: time.Now(), Secure: true, Region: "us-east-1"})
		for key, value := range c.context {
			context[key] = []string{value}
		}
		d := policy.Evaluate(iampolicy.Request{Caller: caller, Action: c.action, Resource: c.resource, Context: context})
		if (d.Verdict == iampolicy.Allow) != c.want {
			t.Errorf("%s: %v, %s", name, d.Verdict, d.Reason)
		}
	}
}

func merge(all ...map[string]string) map[string]string {
	merged := map[string]string{}
	for _, one := range all {
		maps.Copy(merged, one)
	}
	return merged
}
