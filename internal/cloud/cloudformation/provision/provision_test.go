// SPDX-License-Identifier: Apache-2.0

package provision_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/cloudformation/resource"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/cloud/cloudformation/provision"
)

// stackID is the ARN of the stack of all tests.
const stackID = "arn:aws:cloudformation:us-east-1:000000000000:stack/net/0b1c2d3e-4f50-4172-8394-a5b6c7d8e9f0"

// seed is what the tokens of its resources are made of.
const seed = "5f4dcc3b"

// script answers actions and remembers them.
type script struct {
	t       *testing.T
	answers map[string]any // an awsshape.Object, an error, or a function of the input
	asked   []string
	inputs  map[string]awsshape.Object
}

func (s *script) do(_ context.Context, service, action string, input awsshape.Object) (awsshape.Object, error) {
	s.t.Helper()
	name := service + ":" + action
	s.asked = append(s.asked, name)
	if s.inputs == nil {
		s.inputs = map[string]awsshape.Object{}
	}
	s.inputs[name] = input
	switch answer := s.answers[name].(type) {
	case awsshape.Object:
		return answer, nil
	case error:
		return nil, answer
	case func(awsshape.Object) (awsshape.Object, error):
		return answer(input)
	default:
		return awsshape.Object{}, nil
	}
}

func order(work stack.Work, typ string, properties map[string]any) provision.Order {
	return provision.Order{StackID: stackID, Seed: seed, Operation: "one", Call: stack.Call{Work: work, Resource: stack.Resource{
		LogicalID: "R", Type: typ, Serial: 1, Work: work, Definition: stack.Definition{Properties: properties},
	}}}
}

// Every type of the list can be provisioned, and no other.
func TestEveryTypeIsProvisioned(t *testing.T) {
	if diff := cmp.Diff(resource.Names(), provision.Types()); diff != "" {
		t.Error(diff)
	}
}

// A creation ends a call as soon as the physical id is known; the next call completes it.
func TestACreationIsWrittenBeforeItIsCompleted(t *testing.T) {
	s := &script{t: t, answers: map[string]any{
		"ec2:CreateVpc":              awsshape.Object{"Vpc": awsshape.Object{"VpcId": "vpc-1"}},
		"ec2:DescribeVpcs":           awsshape.Object{"Vpcs": []any{}},
		"ec2:DescribeSecurityGroups": awsshape.Object{"SecurityGroups": []any{awsshape.Object{"GroupId": "sg-1"}}},
		"ec2:DescribeNetworkAcls":    awsshape.Object{"NetworkAcls": []any{awsshape.Object{"NetworkAclId": "acl-1"}}},
	}}
	o := order(stack.Creating, "AWS::EC2::VPC", map[string]any{"CidrBlock": "10.0.0.0/16", "EnableDnsHostnames": "true"})
	first := provision.Carry(t.Context(), s.do, o)
	if first.Result != stack.Pending || first.PhysicalID != "vpc-1" || first.Reason != "" {
		t.Fatalf("%+v", first)
	}
	if want := []string{"ec2:DescribeVpcs", "ec2:CreateVpc"}; !slices.Equal(s.asked, want) {
		t.Errorf("asked %v", s.asked)
	}
	o.Resource.PhysicalID, o.Resource.Attributes = first.PhysicalID, first.Attributes
	s.answers["ec2:DescribeVpcs"] = awsshape.Object{"Vpcs": []any{awsshape.Object{"VpcId": "vpc-1", "CidrBlock": "10.0.0.0/16", "State": "available"}}}
	second := provision.Carry(t.Context(), s.do, o)
	if second.Result != stack.Succeeded || second.Attributes["DefaultSecurityGroup"] != "sg-1" || second.Attributes["CidrBlock"] != "10.0.0.0/16" {
		t.Errorf("%+v", second)
	}
	if got := s.inputs["ec2:ModifyVpcAttribute"]; got["VpcId"] != "vpc-1" {
		t.Errorf("completed by %v", got)
	}
}

// A creation that was made before the process ended is found again by its tag.
func TestACreationIsFoundAgain(t *testing.T) {
	s := &script{t: t, answers: map[string]any{"ec2:DescribeVpcs": awsshape.Object{"Vpcs": []any{awsshape.Object{"VpcId": "vpc-1"}}}}}
	got := provision.Carry(t.Context(), s.do, order(stack.Creating, "AWS::EC2::VPC", map[string]any{"CidrBlock": "10.0.0.0/16"}))
	if got.PhysicalID != "vpc-1" || slices.Contains(s.asked, "ec2:CreateVpc") {
		t.Errorf("%+v after %v", got, s.asked)
	}
}

// A name that is taken is the resource's own only with the tag of its creation.
func TestANameIsTaken(t *testing.T) {
	o := order(stack.Creating, "AWS::IAM::Role", map[string]any{"RoleName": "r", "AssumeRolePolicyDocument": map[string]any{}})
	for name, c := range map[string]struct {
		tag  string
		want stack.Result
	}{
		"by the creation itself": {o.Resource.Token(seed), stack.Pending},
		"by somebody else":       {"other", stack.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{t: t, answers: map[string]any{
				"iam:CreateRole": awsfault.Errorf("EntityAlreadyExists", "Role with name r already exists."),
				"iam:GetRole":    awsshape.Object{"Role": awsshape.Object{"Tags": []any{awsshape.Object{"Key": "muster.dev/stack-resource", "Value": c.tag}}}},
			}}
			if got := provision.Carry(t.Context(), s.do, o); got.Result != c.want || c.want == stack.Pending != (got.PhysicalID == "r") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A refusal that may pass is tried again, and any other fails with the words of the action.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		work stack.Work
		err  error
		want stack.Result
		why  string
	}{
		"denied":                       {stack.Creating, awsfault.Errorf("UnauthorizedOperation", "You may not"), stack.Failed, "You may not (Error Code: UnauthorizedOperation)"},
		"throttled":                    {stack.Creating, awsfault.Errorf("RequestLimitExceeded", "Slower"), stack.Pending, "Slower (Error Code: RequestLimitExceeded)"},
		"away":                         {stack.Creating, awsfault.Errorf("Anything", "Later").WithStatus(http.StatusServiceUnavailable), stack.Pending, "Later (Error Code: Anything)"},
		"a deletion of what is used":   {stack.Deleting, awsfault.Errorf("DependencyViolation", "In use"), stack.Pending, "In use (Error Code: DependencyViolation)"},
		"a creation of what is used":   {stack.Creating, awsfault.Errorf("DependencyViolation", "In use"), stack.Failed, "In use (Error Code: DependencyViolation)"},
		"a deletion of what is gone":   {stack.Deleting, awsfault.Errorf("InvalidInternetGatewayID.NotFound", "Gone"), stack.Succeeded, ""},
		"a deletion that is forbidden": {stack.Deleting, awsfault.Errorf("UnauthorizedOperation", "You may not"), stack.Failed, "You may not (Error Code: UnauthorizedOperation)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{t: t, answers: map[string]any{"ec2:CreateInternetGateway": c.err, "ec2:DeleteInternetGateway": c.err}}
			o := order(c.work, "AWS::EC2::InternetGateway", map[string]any{})
			if c.work == stack.Deleting {
				o.Resource.PhysicalID, o.Resource.Attributes = "igw-1", map[string]any{"InternetGatewayId": "igw-1"}
			}
			if got := provision.Carry(t.Context(), s.do, o); got.Result != c.want || got.Reason != c.why {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Updates of a cluster are made one after the other, each the same one however often it is asked for, and what is there already is left out.
func TestAClusterIsUpdatedStepByStep(t *testing.T) {
	version, status, tokens := "1.35", "InProgress", map[string]int{}
	s := &script{t: t}
	s.answers = map[string]any{
		"eks:DescribeCluster": func(awsshape.Object) (awsshape.Object, error) {
			return awsshape.Object{"cluster": awsshape.Object{
				"name": "c", "status": "ACTIVE", "version": version, "arn": "arn:c", "deletionProtection": true,
			}}, nil
		},
		"eks:UpdateClusterVersion": func(in awsshape.Object) (awsshape.Object, error) {
			tokens[fmt.Sprint(in["clientRequestToken"])]++
			return awsshape.Object{"update": awsshape.Object{"id": "u-1"}}, nil
		},
		"eks:DescribeUpdate": func(awsshape.Object) (awsshape.Object, error) {
			return awsshape.Object{"update": awsshape.Object{"id": "u-1", "status": status}}, nil
		},
	}
	o := order(stack.Updating, "AWS::EKS::Cluster", map[string]any{"Name": "c", "Version": "1.36", "DeletionProtection": "true"})
	o.Resource.PhysicalID, o.Resource.Was = "c", &stack.Definition{Properties: map[string]any{"Name": "c", "Version": "1.35", "DeletionProtection": "false"}}
	for range 3 {
		if got := provision.Carry(t.Context(), s.do, o); got.Result != stack.Pending {
			t.Fatalf("%+v", got)
		}
	}
	if len(tokens) != 1 || slices.Contains(s.asked, "eks:UpdateClusterConfig") {
		t.Errorf("tokens %v, asked %v", tokens, s.asked)
	}
	status, version = "Successful", "1.36"
	if got := provision.Carry(t.Context(), s.do, o); got.Result != stack.Succeeded || got.Attributes["Arn"] != "arn:c" {
		t.Errorf("%+v", got)
	}
	status, version, o.Operation = "Failed", "1.35", "two"
	if got := provision.Carry(t.Context(), s.do, o); got.Result != stack.Failed || !strings.Contains(got.Reason, "u-1 is Failed") || len(tokens) != 2 {
		t.Errorf("%+v, tokens %v", got, tokens)
	}
}

// A node group that has the version which its template begins to name is not changed: eksctl's upgrade sends such a template.
func TestANodeGroupHasItsVersion(t *testing.T) {
	const id = "c/g"
	s := &script{t: t, answers: map[string]any{
		"eks:DescribeNodegroup": awsshape.Object{"nodegroup": awsshape.Object{"status": "ACTIVE", "nodegroupName": "g", "clusterName": "c", "nodegroupArn": "arn:g"}},
	}}
	has := map[string]any{"ClusterName": "c", "NodegroupName": "g", "NodeRole": "arn:r", "Subnets": []any{"subnet-1"}}
	wants := map[string]any{"ClusterName": "c", "NodegroupName": "g", "NodeRole": "arn:r", "Subnets": []any{"subnet-1"}, "Version": "1.36", "ForceUpdateEnabled": "false"}
	o := order(stack.Updating, "AWS::EKS::Nodegroup", wants)
	o.Resource.PhysicalID, o.Resource.Was = id, &stack.Definition{Properties: has}
	for words, want := range map[string]stack.Result{
		"Nodegroup g is already at release version 1.36.4-20261122 and its launch template: send force to have its machines replaced all the same": stack.Succeeded,
		"Nodegroup g is already at version 3 of launch template lt-1":                                                                              stack.Succeeded,
		"Requested Nodegroup version is not supported: 1.99":                                                                                       stack.Failed,
	} {
		s.answers["eks:UpdateNodegroupVersion"] = awsfault.Errorf("InvalidParameterException", "%s", words)
		if got := provision.Carry(t.Context(), s.do, o); got.Result != want {
			t.Errorf("%s: %+v", words, got)
		}
	}
	if in := s.inputs["eks:UpdateNodegroupVersion"]; in["version"] != "1.36" || in["force"] != false {
		t.Errorf("asked %v", in)
	}
}

// A cluster is created once it is active, and deleted once it is gone.
func TestAClusterComesAndGoes(t *testing.T) {
	status := "CREATING"
	gone := awsfault.Errorf("ResourceNotFoundException", "No cluster found for name: c.")
	s := &script{t: t}
	s.answers = map[string]any{"eks:DescribeCluster": func(awsshape.Object) (awsshape.Object, error) {
		if status == "" {
			return nil, gone
		}
		return awsshape.Object{"cluster": awsshape.Object{"status": status, "certificateAuthority": awsshape.Object{"data": "abc"}, "health": awsshape.Object{"issues": []any{awsshape.Object{"code": "Bad", "message": "luck"}}}}}, nil
	}}
	o := order(stack.Creating, "AWS::EKS::Cluster", map[string]any{"Name": "c", "RoleArn": "arn:r", "ResourcesVpcConfig": map[string]any{"SubnetIds": []any{"subnet-1"}}})
	if got := provision.Carry(t.Context(), s.do, o); got.PhysicalID != "c" || s.inputs["eks:CreateCluster"]["clientRequestToken"] != o.Resource.Token(seed) {
		t.Fatalf("%+v, %v", got, s.inputs)
	}
	o.Resource.PhysicalID = "c"
	for _, c := range []struct {
		status string
		work   stack.Work
		want   stack.Result
	}{
		{"CREATING", stack.Creating, stack.Pending},
		{"ACTIVE", stack.Creating, stack.Succeeded},
		{"DEGRADED", stack.Creating, stack.Succeeded},
		{"FAILED", stack.Creating, stack.Failed},
		{"ACTIVE", stack.Deleting, stack.Pending},
		{"DELETING", stack.Deleting, stack.Pending},
		{"", stack.Deleting, stack.Succeeded},
	} {
		status, o.Work = c.status, c.work
		if got := provision.Carry(t.Context(), s.do, o); got.Result != c.want || c.want == stack.Failed && !strings.Contains(got.Reason, "Bad: luck") {
			t.Errorf("%s of a cluster that is %q: %+v", c.work, c.status, got)
		}
	}
}

// The rules of a group that its own properties list are changed, and no others.
func TestRulesOfAGroupChange(t *testing.T) {
	s := &script{t: t, answers: map[string]any{"ec2:DescribeSecurityGroups": awsshape.Object{"SecurityGroups": []any{awsshape.Object{"GroupId": "sg-1", "VpcId": "vpc-1"}}}}}
	rule := func(port string) any {
		return map[string]any{"IpProtocol": "tcp", "FromPort": port, "ToPort": port, "CidrIp": "10.0.0.0/8"}
	}
	o := order(stack.Updating, "AWS::EC2::SecurityGroup", map[string]any{"GroupDescription": "d", "SecurityGroupIngress": []any{rule("22"), rule("443")}})
	o.Resource.PhysicalID, o.Resource.Attributes = "sg-1", map[string]any{"GroupId": "sg-1"}
	o.Resource.Was = &stack.Definition{Properties: map[string]any{"GroupDescription": "d", "SecurityGroupIngress": []any{rule("22"), rule("80")}}}
	if got := provision.Carry(t.Context(), s.do, o); got.Result != stack.Succeeded {
		t.Fatalf("%+v", got)
	}
	if want := []string{"ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress", "ec2:DescribeSecurityGroups"}; !slices.Equal(s.asked, want) {
		t.Errorf("asked %v", s.asked)
	}
	for action, port := range map[string]int64{"Authorize": 443, "Revoke": 80} {
		permission := s.inputs["ec2:"+action+"SecurityGroupIngress"]["IpPermissions"].([]any)[0].(awsshape.Object)
		if permission["FromPort"] != port {
			t.Errorf("%s: %v", action, permission)
		}
	}
}

// A rollback leads from what was tried to what was before.
func TestARoleIsRestored(t *testing.T) {
	s := &script{t: t, answers: map[string]any{"iam:GetRole": awsshape.Object{"Role": awsshape.Object{"Arn": "arn:r", "RoleId": "AROA"}}}}
	policies := func(names ...any) map[string]any {
		return map[string]any{"RoleName": "r", "ManagedPolicyArns": names, "AssumeRolePolicyDocument": map[string]any{}}
	}
	o := order(stack.Restoring, "AWS::IAM::Role", policies("arn:a"))
	o.Resource.PhysicalID, o.Resource.Tried = "r", &stack.Definition{Properties: policies("arn:a", "arn:b")}
	if got := provision.Carry(t.Context(), s.do, o); got.Result != stack.Succeeded || got.Attributes["Arn"] != "arn:r" {
		t.Fatalf("%+v", got)
	}
	if want := []string{"iam:AttachRolePolicy", "iam:DetachRolePolicy", "iam:GetRole"}; !slices.Equal(s.asked, want) || s.inputs["iam:DetachRolePolicy"]["PolicyArn"] != "arn:b" {
		t.Errorf("asked %v, %v", s.asked, s.inputs)
	}
}
