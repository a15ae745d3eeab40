// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// network is a template of each type that is made without controllers of clusters.
const network = `{
	"Parameters": {"Word": {"Type": "String", "NoEcho": true, "Default": "abcdefgh"}, "Name": {"Type": "String", "Default": "first"}},
	"Resources": {
		"VPC": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.7.0.0/16", "EnableDnsHostnames": true, "Tags": [{"Key": "Name", "Value": {"Ref": "Name"}}]}},
		"Subnet": {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": {"Ref": "VPC"}, "CidrBlock": {"Fn::Select": [0, {"Fn::Cidr": ["10.7.0.0/16", 2, 8]}]}, "AvailabilityZone": {"Fn::Select": [0, {"Fn::GetAZs": ""}]}, "MapPublicIpOnLaunch": true}},
		"Gateway": {"Type": "AWS::EC2::InternetGateway"},
		"Attachment": {"Type": "AWS::EC2::VPCGatewayAttachment", "Properties": {"VpcId": {"Ref": "VPC"}, "InternetGatewayId": {"Ref": "Gateway"}}},
		"Table": {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": {"Ref": "VPC"}}},
		"Route": {"Type": "AWS::EC2::Route", "DependsOn": "Attachment", "Properties": {"RouteTableId": {"Ref": "Table"}, "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": {"Ref": "Gateway"}}},
		"Tie": {"Type": "AWS::EC2::SubnetRouteTableAssociation", "Properties": {"SubnetId": {"Ref": "Subnet"}, "RouteTableId": {"Ref": "Table"}}},
		"Address": {"Type": "AWS::EC2::EIP", "DependsOn": "Attachment", "Properties": {"Domain": "vpc"}},
		"NAT": {"Type": "AWS::EC2::NatGateway", "Properties": {"SubnetId": {"Ref": "Subnet"}, "AllocationId": {"Fn::GetAtt": ["Address", "AllocationId"]}}},
		"Group": {"Type": "AWS::EC2::SecurityGroup", "Properties": {"GroupDescription": "of a test", "VpcId": {"Ref": "VPC"}, "SecurityGroupIngress": [{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "10.0.0.0/8"}]}},
		"Rule": {"Type": "AWS::EC2::SecurityGroupIngress", "Properties": {"GroupId": {"Ref": "Group"}, "IpProtocol": "-1", "SourceSecurityGroupId": {"Ref": "Group"}}},
		"Out": {"Type": "AWS::EC2::SecurityGroupEgress", "Properties": {"GroupId": {"Ref": "Group"}, "IpProtocol": "tcp", "FromPort": "443", "ToPort": "443", "CidrIp": "10.0.0.0/8"}},
		"Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]},
			"ManagedPolicyArns": ["arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"], "Policies": [{"PolicyName": "inline", "PolicyDocument": {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}]}}]}},
		"Policy": {"Type": "AWS::IAM::Policy", "Properties": {"PolicyName": "more", "Roles": [{"Ref": "Role"}], "PolicyDocument": {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}}},
		"Profile": {"Type": "AWS::IAM::InstanceProfile", "Properties": {"Roles": [{"Ref": "Role"}]}},
		"Template": {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": {"InstanceType": "t3.medium", "SecurityGroupIds": [{"Ref": "Group"}]}}}
	},
	"Outputs": {
		"VPC": {"Value": {"Ref": "VPC"}, "Export": {"Name": {"Fn::Sub": "${AWS::StackName}::VPC"}}},
		"Default": {"Value": {"Fn::GetAtt": ["VPC", "DefaultSecurityGroup"]}},
		"Role": {"Value": {"Fn::GetAtt": ["Role", "Arn"]}},
		"Word": {"Value": {"Ref": "Word"}}
	}
}`

// stacked is an account in which stacks are brought forward, and what its controllers would do is done.
type stacked struct {
	*served
	management client.Client
	loops      []func(context.Context)
}

func stacks(t *testing.T) *stacked {
	t.Helper()
	s := &stacked{}
	c := config(t)
	c.Run = func(f func(context.Context)) { s.loops = append(s.loops, f) }
	s.served = serveOf(t, c, func(c client.Client) client.Client {
		s.management = c
		return c
	})
	return s
}

// live runs the loops until the returned function is called.
func (s *stacked) live() (kill func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var group sync.WaitGroup
	for _, loop := range append(s.loops, s.controllers) {
		group.Go(func() { loop(ctx) })
	}
	return func() {
		cancel()
		group.Wait()
	}
}

// controllers brings VPCs and subnets into being, and lets what is deleted go.
func (s *stacked) controllers(ctx context.Context) {
	ready := []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Now()}}
	for ctx.Err() == nil {
		var vpcs v1alpha1.VPCList
		var subnets v1alpha1.SubnetList
		var groups v1alpha1.SecurityGroupList
		_, _, _ = s.management.List(ctx, &vpcs), s.management.List(ctx, &subnets), s.management.List(ctx, &groups)
		for i := range vpcs.Items {
			vpc := &vpcs.Items[i]
			if len(vpc.Status.Conditions) == 0 {
				group := &v1alpha1.SecurityGroup{}
				group.Name = v1alpha1.DefaultSecurityGroupID(vpc.Name)
				group.Spec.VPCID, group.Spec.GroupName = vpc.Name, v1alpha1.DefaultSecurityGroup
				_ = s.management.Create(ctx, group)
			}
			s.settle(ctx, vpc, &vpc.Status.Conditions, ready)
		}
		for i := range subnets.Items {
			s.settle(ctx, &subnets.Items[i], &subnets.Items[i].Status.Conditions, ready)
		}
		for i := range groups.Items {
			s.settle(ctx, &groups.Items[i], &groups.Items[i].Status.Conditions, ready)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// settle makes an object ready, or lets it go if it is deleted.
func (s *stacked) settle(ctx context.Context, object client.Object, conditions *[]metav1.Condition, ready []metav1.Condition) {
	switch {
	case object.GetDeletionTimestamp() != nil:
		object.SetFinalizers(nil)
	case len(*conditions) > 0:
		return
	default:
		*conditions = ready
	}
	_ = s.management.Update(ctx, object)
}

// ends waits until a stack is in one of the statuses of an end, and returns that.
func (s *stacked) ends(name string) string {
	s.t.Helper()
	status := regexp.MustCompile(`<StackStatus>([A-Z_]+)</StackStatus>`)
	for range 1200 {
		code, body := s.send(s.t.Context(), s.admin, "cloudformation DescribeStacks StackName="+url.QueryEscape(name))
		if code != 200 {
			return body
		}
		if found := status.FindStringSubmatch(body); found != nil && (found[1] == "REVIEW_IN_PROGRESS" || !strings.HasSuffix(found[1], "_IN_PROGRESS")) {
			return found[1]
		}
		<-time.After(50 * time.Millisecond)
	}
	_, events := s.send(s.t.Context(), s.admin, "cloudformation DescribeStackEvents StackName="+url.QueryEscape(name))
	s.t.Fatalf("the stack does not end: %s", events)
	return ""
}

// order sends a request about stacks as somebody.
func (s *stacked) order(who aws.Credentials, action string, members ...string) (int, string) {
	s.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(members); i += 2 {
		form.Set(members[i], members[i+1])
	}
	return s.send(s.t.Context(), who, "cloudformation "+action+" "+form.Encode())
}

// nothingLeft fails the test if a resource of a stack is there.
func (s *stacked) nothingLeft() {
	s.t.Helper()
	for request, trace := range map[string]string{
		"ec2 DescribeVpcs": "<vpcId>", "ec2 DescribeInternetGateways": "<internetGatewayId>", "ec2 DescribeAddresses": "<allocationId>", "ec2 DescribeLaunchTemplates": "<launchTemplateId>",
		"iam ListRoles": "Net-Role", "iam ListInstanceProfiles": "Net-Profile",
	} {
		if _, body := s.send(s.t.Context(), s.admin, request); strings.Contains(body, trace) {
			s.t.Errorf("%s: %s", request, body)
		}
	}
}
