// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
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

// forgetful is a client that lists no stacks for a loop at times.
type forgetful struct {
	client.Client

	left atomic.Int32 // how many lists fail
}

type loopKey struct{}

func (f *forgetful) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	pending := len(options) > 0 // operations under way are looked for with an option
	if _, ok := list.(*v1alpha1.StackList); ok && !pending && ctx.Value(loopKey{}) != nil && f.left.Add(-1) >= 0 {
		return errors.New("the management plane is away")
	}
	return f.Client.List(ctx, list, options...)
}

// A management plane that does not answer for a moment fails no stack: what a stack imports is asked for again.
func TestAPlaneThatIsAwayFailsNoStack(t *testing.T) {
	for name, template := range map[string]string{
		"in a property": `{"Resources": {"Gateway": {"Type": "AWS::EC2::InternetGateway", "Properties": {"Tags": [{"Key": "of", "Value": {"Fn::ImportValue": "shared"}}]}}}}`,
		"in an output":  `{"Resources": {"Gateway": {"Type": "AWS::EC2::InternetGateway"}}, "Outputs": {"O": {"Value": {"Fn::ImportValue": "shared"}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, plane := &stacked{}, &forgetful{}
			c := config(t)
			c.Run = func(f func(context.Context)) {
				s.loops = append(s.loops, func(ctx context.Context) { f(context.WithValue(ctx, loopKey{}, true)) })
			}
			s.served = serveOf(t, c, func(c client.Client) client.Client {
				s.management, plane.Client = c, c
				return plane
			})
			defer s.live()()
			s.makes("Net", sharing)
			plane.left.Store(3)
			s.makes("User", template)
			if left := plane.left.Load(); left > 0 {
				t.Errorf("the management plane was never away: %d", left)
			}
		})
	}
}

// A change set is of the stack that it was compared with: an update in between makes it obsolete.
func TestAnObsoleteChangeSetIsNotExecuted(t *testing.T) {
	s := stacks(t)
	defer s.live()()
	s.makes("Net", sharing)
	name := []string{"StackName", "Net", "UsePreviousTemplate", "true", "Parameters.member.1.ParameterKey", "Name", "Parameters.member.1.ParameterValue"}
	if status, body := s.order(s.admin, "CreateChangeSet", append(name, "b", "ChangeSetName", "old")...); status != 200 {
		t.Fatal(status, body)
	}
	if status, body := s.order(s.admin, "UpdateStack", append(name, "c")...); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends("Net"); got != "UPDATE_COMPLETE" {
		t.Fatal(got)
	}
	if _, body := s.order(s.admin, "DescribeChangeSet", "StackName", "Net", "ChangeSetName", "old"); !strings.Contains(body, "<ExecutionStatus>OBSOLETE<") {
		t.Error(body)
	}
	if status, body := s.order(s.admin, "ExecuteChangeSet", "StackName", "Net", "ChangeSetName", "old"); status != 400 || !strings.Contains(body, "InvalidChangeSetStatus") || !strings.Contains(body, "OBSOLETE") {
		t.Errorf("%d %s", status, body)
	}
	if got := s.ends("Net"); got != "UPDATE_COMPLETE" {
		t.Error(got)
	}
	if _, body := s.send(t.Context(), s.admin, "ec2 DescribeInternetGateways"); !strings.Contains(body, "<value>c</value>") {
		t.Error(body)
	}
}

// An execution whose answer was lost is asked for again with its client token.
func TestAnExecutionIsAskedForTwice(t *testing.T) {
	s := stacks(t)
	defer s.live()()
	_, body := s.order(s.admin, "CreateChangeSet", "StackName", "Net", "ChangeSetName", "first", "ChangeSetType", "CREATE", "TemplateBody", gateway)
	set := regexp.MustCompile(`arn:aws:cloudformation:[^<]*:changeSet/[^<]*`).FindString(body)
	for _, members := range [][]string{{"StackName", "Net", "ChangeSetName", "first"}, {"StackName", "Net", "ChangeSetName", "first"}, {"ChangeSetName", set}} {
		if status, body := s.order(s.admin, "ExecuteChangeSet", append(members, "ClientRequestToken", "once")...); status != 200 {
			t.Errorf("%v: %d %s", members, status, body)
		}
	}
	if status, body := s.order(s.admin, "ExecuteChangeSet", "StackName", "Net", "ChangeSetName", "first", "ClientRequestToken", "twice"); status == 200 || !strings.Contains(body, "ChangeSetNotFound") {
		t.Errorf("%d %s", status, body)
	}
	if got := s.ends("Net"); got != "CREATE_COMPLETE" {
		t.Error(got)
	}
}

// A policy about the name of a change set holds however the set is named.
func TestASetIsDeniedByAnyName(t *testing.T) {
	s := stacks(t)
	defer s.live()()
	_, body := s.order(s.admin, "CreateChangeSet", "StackName", "Net", "ChangeSetName", "kept", "ChangeSetType", "CREATE", "TemplateBody", gateway)
	set := regexp.MustCompile(`arn:aws:cloudformation:[^<]*:changeSet/[^<]*`).FindString(body)
	denied := s.user("denied", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"cloudformation:*","Resource":"*"},
		{"Effect":"Deny","Action":"cloudformation:*","Resource":"*","Condition":{"StringEquals":{"cloudformation:ChangeSetName":"kept"}}}]}`)
	for _, action := range []string{"DescribeChangeSet", "ExecuteChangeSet", "DeleteChangeSet"} {
		for _, members := range [][]string{{"StackName", "Net", "ChangeSetName", "kept"}, {"StackName", "Net", "ChangeSetName", set}, {"ChangeSetName", set}} {
			if status, body := s.order(denied, action, members...); status != 403 {
				t.Errorf("%s of %v: %d %s", action, members, status, body)
			}
		}
	}
}

// Parameters, in a stack or in its change sets, do not fill the object of a stack so that it could never change again.
func TestParametersDoNotFillAStack(t *testing.T) {
	s := stacks(t)
	defer s.live()()
	parameters := ""
	for i := range 50 {
		parameters += fmt.Sprintf(`, "P%d": {"Type": "String", "Default": ""}`, i)
	}
	s.makes("Net", `{"Parameters": {`+parameters[2:]+`}, `+strings.TrimPrefix(gateway, "{"))
	set := func(name string, large int) (int, string) {
		t.Helper()
		members := []string{"StackName", "Net", "UsePreviousTemplate", "true", "ChangeSetName", name}
		for i := range large {
			members = append(members, fmt.Sprintf("Parameters.member.%d.ParameterKey", i+1), fmt.Sprintf("P%d", i), fmt.Sprintf("Parameters.member.%d.ParameterValue", i+1), strings.Repeat("x", 4000))
		}
		return s.order(s.admin, "CreateChangeSet", members...)
	}
	for i, c := range []struct {
		large, status int
		want          string
	}{
		{30, 200, "first"},
		{50, 400, "a stack takes 196608"},
		{30, 200, "third"},
		{30, 400, "LimitExceededException"},
		{1, 200, "fifth"},
	} {
		name := []string{"first", "second", "third", "fourth", "fifth"}[i]
		if status, body := set(name, c.large); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s, want %d %s", name, status, body, c.status, c.want)
		}
	}
}

// The rollback of an update leaves a subnet with the route table that it had, and no stack takes a subnet of another table.
func TestARollbackKeepsTheRouteTable(t *testing.T) {
	s := stacks(t)
	defer s.live()()
	const template = `{"Resources": {
		"VPC": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.7.0.0/16"}},
		"Subnet": {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": {"Ref": "VPC"}, "CidrBlock": "10.7.0.0/24"}},
		"First": {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": {"Ref": "VPC"}}},
		"Second": {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": {"Ref": "VPC"}}},
		"Tie": {"Type": "AWS::EC2::SubnetRouteTableAssociation", "Properties": {"SubnetId": {"Ref": "Subnet"}, "RouteTableId": {"Ref": "First"}}}},
		"Outputs": {"First": {"Value": {"Ref": "First"}}, "Subnet": {"Value": {"Ref": "Subnet"}}, "Tie": {"Value": {"Ref": "Tie"}}}}`
	s.makes("Net", template)
	output := func(name string) string {
		t.Helper()
		_, body := s.order(s.admin, "DescribeStacks", "StackName", "Net")
		found := regexp.MustCompile(`<OutputKey>` + name + `</OutputKey>\s*<OutputValue>([^<]*)<`).FindStringSubmatch(body)
		if found == nil {
			t.Fatal(body)
		}
		return found[1]
	}
	first, subnet := output("First"), output("Subnet")
	tied := func(want bool) {
		t.Helper()
		_, body := s.send(t.Context(), s.admin, "ec2 DescribeRouteTables RouteTableId.1="+first)
		if got := strings.Contains(body, "<subnetId>"+subnet+"<"); got != want {
			t.Errorf("the subnet %s has the table %s: %t, want %t: %s", subnet, first, got, want, body)
		}
	}
	tied(true)
	moved := strings.Replace(template, `"RouteTableId": {"Ref": "First"}`, `"RouteTableId": {"Ref": "Second"}`, 1)
	fails := strings.Replace(moved, `"First": {"Type"`, `"Bad": {"Type": "AWS::EC2::Subnet", "DependsOn": "Tie", "Properties": {"VpcId": {"Ref": "VPC"}, "CidrBlock": "10.9.0.0/24"}}, "First": {"Type"`, 1)
	change := func(template, want string) {
		t.Helper()
		if status, body := s.order(s.admin, "UpdateStack", "StackName", "Net", "TemplateBody", template); status != 200 {
			t.Fatal(status, body)
		}
		if got := s.ends("Net"); got != want {
			_, events := s.order(s.admin, "DescribeStackEvents", "StackName", "Net")
			t.Fatal(got, events)
		}
	}
	change(fails, "UPDATE_ROLLBACK_COMPLETE")
	tied(true)
	change(moved, "UPDATE_COMPLETE")
	tied(false)
	tie := output("Tie")
	if _, body := s.send(t.Context(), s.admin, "ec2 DescribeRouteTables"); !strings.Contains(body, tie) {
		t.Errorf("Ref of the association is %s, which is none: %s", tie, body)
	}
	steals := fmt.Sprintf(`{"Resources": {"Tie": {"Type": "AWS::EC2::SubnetRouteTableAssociation", "Properties": {"SubnetId": %q, "RouteTableId": %q}}}}`, subnet, first)
	if status, body := s.order(s.admin, "CreateStack", "StackName", "Thief", "TemplateBody", steals); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends("Thief"); got != "ROLLBACK_COMPLETE" {
		t.Error(got)
	}
	tied(false)
	if status, body := s.order(s.admin, "DeleteStack", "StackName", "Net"); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends("Net"); !strings.Contains(got, "does not exist") {
		t.Error(got)
	}
}
