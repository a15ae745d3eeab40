// SPDX-License-Identifier: Apache-2.0

package ec2securitygroup

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/cloud/ec2/ec2resourcetest"
)

// Every filter is asked about a group with rules of all kinds in both directions, two of the same ports among them, and
// about a group without rules. Every filter of rules is asked about the same rules.
func TestFilters(t *testing.T) {
	const group, other = "sg-0000000000000000a", "sg-0000000000000000b"
	ports := func(direction v1alpha1.RuleDirection, protocol string, from, to int32) v1alpha1.SecurityGroupRule {
		return v1alpha1.SecurityGroupRule{Direction: direction, Protocol: protocol, FromPort: &from, ToPort: &to}
	}
	var rules []v1alpha1.SecurityGroupRule
	add := func(r v1alpha1.SecurityGroupRule, v4, v6, groupID string) {
		r.ID, r.CIDRIPv4, r.CIDRIPv6, r.GroupID = "sgr-0000000000000000"+string(rune('1'+len(rules))), v4, v6, groupID
		rules = append(rules, r)
	}
	add(ports(v1alpha1.RuleIngress, "tcp", 80, 443), "10.0.0.0/16", "", "")
	add(ports(v1alpha1.RuleIngress, "tcp", 80, 443), "10.1.0.0/16", "", "")
	add(ports(v1alpha1.RuleIngress, "tcp", 80, 443), "", "fd00::/64", "")
	add(ports(v1alpha1.RuleEgress, "icmp", -1, -1), "", "fd01::/64", "")
	add(ports(v1alpha1.RuleIngress, "udp", 53, 53), "", "", other)
	add(ports(v1alpha1.RuleIngress, "udp", 53, 53), "", "", group)
	add(v1alpha1.SecurityGroupRule{Direction: v1alpha1.RuleIngress, Protocol: v1alpha1.AllProtocols}, "", "", group)
	add(v1alpha1.SecurityGroupRule{Direction: v1alpha1.RuleEgress, Protocol: v1alpha1.AllProtocols}, "0.0.0.0/0", "", "")
	add(ports(v1alpha1.RuleEgress, "tcp", 0, 65535), "", "", other)
	of := &v1alpha1.SecurityGroup{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		Spec:       v1alpha1.SecurityGroupSpec{VPCID: "vpc-0000000000000000a", GroupName: "web", Description: "of the web", Rules: rules},
	}
	a, call := New(ec2resourcetest.New(t), nil, nil), &awsfront.Call{Caller: awsfronttest.Caller{}, Service: "ec2"}
	ec2resourcetest.Golden(t, "testdata/filters.txt", groupNoun(), []securityGroup{
		a.showGroup(call, of), a.showGroup(call, &v1alpha1.SecurityGroup{ObjectMeta: metav1.ObjectMeta{Name: other}}),
	})
	var shown []groupRule
	for _, r := range rules {
		shown = append(shown, a.showRule(call, of, r))
	}
	ec2resourcetest.Golden(t, "testdata/rulefilters.txt", ruleNoun(), shown)
}
