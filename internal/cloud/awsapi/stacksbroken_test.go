// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// makes orders a stack of a template, and waits until it is there.
func (s *stacked) makes(name, template string, members ...string) {
	s.t.Helper()
	if status, body := s.order(s.admin, "CreateStack", append([]string{"StackName", name, "TemplateBody", template}, members...)...); status != 200 {
		s.t.Fatal(status, body)
	}
	if got := s.ends(name); got != "CREATE_COMPLETE" {
		_, events := s.order(s.admin, "DescribeStackEvents", "StackName", name)
		s.t.Fatal(got, events)
	}
}

// sharing is a template with an export, and gateway one with nothing but a resource.
const (
	sharing = `{"Parameters": {"Name": {"Type": "String", "Default": "a"}}, "Resources": {"Gateway": {"Type": "AWS::EC2::InternetGateway", "Properties": {"Tags": [{"Key": "Name", "Value": {"Ref": "Name"}}]}}},
		"Outputs": {"G": {"Value": {"Ref": "Gateway"}, "Export": {"Name": "shared"}}}}`
	gateway = `{"Resources": {"Gateway": {"Type": "AWS::EC2::InternetGateway"}}}`
)

// Who may make roles and read a stack, and nothing else, gets no rights by a role that has the tag of a creation to come: the tag is made
// of something that nobody is told.
func TestAPlantedResourceIsNotTaken(t *testing.T) {
	s := stacks(t)
	defer s.live()()
	s.makes("Net", gateway)
	stranger := s.user("stranger", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["cloudformation:Describe*","iam:CreateRole","iam:TagRole"],"Resource":"*"}]}`)
	_, body := s.order(stranger, "DescribeStacks", "StackName", "Net")
	id := regexp.MustCompile(`arn:aws:cloudformation:[^<]*`).FindString(body)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", id, 2)) // the tag was made of the ARN and the serial
	const trusts = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::000000000000:user/stranger"},"Action":"sts:AssumeRole"}]}`
	if status, body := s.send(t.Context(), stranger, "iam CreateRole "+url.Values{
		"RoleName": {"deployer"}, "AssumeRolePolicyDocument": {trusts}, "Tags.member.1.Key": {"muster.dev/stack-resource"}, "Tags.member.1.Value": {hex.EncodeToString(sum[:16])},
	}.Encode()); status != 200 {
		t.Fatal(status, body)
	}
	with := strings.TrimSuffix(gateway, "}}") + `, "Role": {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "deployer", "ManagedPolicyArns": ["arn:aws:iam::aws:policy/AdministratorAccess"],
		"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}}}}}`
	if status, body := s.order(s.admin, "UpdateStack", "StackName", "Net", "TemplateBody", with, "Capabilities.member.1", "CAPABILITY_NAMED_IAM"); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends("Net"); got != "UPDATE_ROLLBACK_COMPLETE" {
		t.Error(got)
	}
	if _, body := s.send(t.Context(), s.admin, "iam ListAttachedRolePolicies RoleName=deployer"); strings.Contains(body, "AdministratorAccess") || !strings.Contains(body, "AttachedPolicies") {
		t.Error("the stranger's role has rights of the stack:", body)
	}
}

// A stack that a change set has made and nobody has executed imports nothing, and holds up nobody who exports.
func TestAStackInReviewHoldsNobodyUp(t *testing.T) {
	s := stacks(t)
	defer s.live()()
	s.makes("Net", sharing)
	const needs = `{"Parameters": {"P": {"Type": "String"}}, "Resources": {"Gateway": {"Type": "AWS::EC2::InternetGateway", "Properties": {"Tags": [{"Key": {"Ref": "P"}, "Value": {"Fn::ImportValue": "shared"}}]}}}}`
	if status, body := s.order(s.admin, "CreateChangeSet", "StackName", "Review", "ChangeSetName", "first", "ChangeSetType", "CREATE", "TemplateBody", needs, "Parameters.member.1.ParameterKey", "P", "Parameters.member.1.ParameterValue", "p"); status != 200 {
		t.Fatal(status, body)
	}
	if status, body := s.order(s.admin, "ListImports", "ExportName", "shared"); status != 400 || !strings.Contains(body, "is not imported by any stack") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := s.order(s.admin, "DeleteStack", "StackName", "Net"); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends("Net"); !strings.Contains(got, "does not exist") {
		t.Error(got)
	}
}
