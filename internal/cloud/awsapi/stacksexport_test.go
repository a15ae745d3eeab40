// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"strings"
	"testing"
)

// An export that a stack imports keeps its value: the update that gives it another one is rolled back. Once nobody imports it, the same
// update succeeds.
func TestAnImportedExportKeepsItsValue(t *testing.T) {
	s := stacks(t)
	defer s.live()()
	const exports = `{"Parameters": {"Name": {"Type": "String", "Default": "a"}}, "Resources": {"VPC": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.7.0.0/16", "Tags": [{"Key": "Name", "Value": {"Ref": "Name"}}]}}},
		"Outputs": {"V": {"Value": {"Ref": "Name"}, "Export": {"Name": "shared"}}}}`
	const imports = `{"Resources": {"Gateway": {"Type": "AWS::EC2::InternetGateway", "Properties": {"Tags": [{"Key": "of", "Value": {"Fn::ImportValue": "shared"}}]}}}}`
	made := func(name, template string) {
		t.Helper()
		if status, body := s.order(s.admin, "CreateStack", "StackName", name, "TemplateBody", template); status != 200 {
			t.Fatal(status, body)
		}
		if got := s.ends(name); got != "CREATE_COMPLETE" {
			t.Fatal(got)
		}
	}
	made("Net", exports)
	made("User", imports)
	change := func(want string) {
		t.Helper()
		if status, body := s.order(s.admin, "UpdateStack", "StackName", "Net", "UsePreviousTemplate", "true", "Parameters.member.1.ParameterKey", "Name", "Parameters.member.1.ParameterValue", "b"); status != 200 {
			t.Fatal(status, body)
		}
		if got := s.ends("Net"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	value := func(want string) {
		t.Helper()
		_, vpcs := s.send(t.Context(), s.admin, "ec2 DescribeVpcs")
		if _, list := s.order(s.admin, "ListExports"); !strings.Contains(list, "<Value>"+want+"</Value>") || !strings.Contains(vpcs, "<value>"+want+"</value>") {
			t.Errorf("want %s: %s %s", want, list, vpcs)
		}
	}
	change("UPDATE_ROLLBACK_COMPLETE")
	if _, events := s.order(s.admin, "DescribeStackEvents", "StackName", "Net"); !strings.Contains(events, "Export shared cannot be updated as it is in use by User") {
		t.Error(events)
	}
	value("a")
	if status, body := s.order(s.admin, "DeleteStack", "StackName", "User"); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends("User"); !strings.Contains(got, "does not exist") {
		t.Error(got)
	}
	change("UPDATE_COMPLETE")
	value("b")
}

// Stacks that come to their end together do not share the name of an export: the others fail.
func TestOneStackHasAnExport(t *testing.T) {
	s := stacks(t)
	const template = `{"Resources": {"Gateway": {"Type": "AWS::EC2::InternetGateway"}}, "Outputs": {"G": {"Value": {"Ref": "Gateway"}, "Export": {"Name": "shared"}}}}`
	names := []string{"A", "B", "C", "D", "E", "F"}
	for _, name := range names {
		if status, body := s.order(s.admin, "CreateStack", "StackName", name, "TemplateBody", template, "OnFailure", "DO_NOTHING"); status != 200 {
			t.Fatal(status, body)
		}
	}
	defer s.live()()
	ends := map[string]int{}
	for _, name := range names {
		ends[s.ends(name)]++
	}
	_, list := s.order(s.admin, "ListExports")
	if ends["CREATE_COMPLETE"] != 1 || ends["CREATE_FAILED"] != len(names)-1 || strings.Count(list, "<Name>shared</Name>") != 1 {
		t.Errorf("%v: %s", ends, list)
	}
}

// A stack that imports its own export is deleted as all others.
func TestAStackThatImportsItself(t *testing.T) {
	s := stacks(t)
	defer s.live()()
	const exports = `{"Resources": {"Gateway": {"Type": "AWS::EC2::InternetGateway"}}, "Outputs": {"G": {"Value": {"Ref": "Gateway"}, "Export": {"Name": "own"}}}}`
	s.makes("Net", exports)
	imports := strings.Replace(exports, `{"Resources": {`, `{"Resources": {"Other": {"Type": "AWS::EC2::InternetGateway", "Properties": {"Tags": [{"Key": "of", "Value": {"Fn::ImportValue": "own"}}]}}, `, 1)
	if status, body := s.order(s.admin, "UpdateStack", "StackName", "Net", "TemplateBody", imports); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends("Net"); got != "UPDATE_COMPLETE" {
		t.Fatal(got)
	}
	if status, body := s.order(s.admin, "DeleteStack", "StackName", "Net"); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends("Net"); !strings.Contains(got, "does not exist") {
		t.Error(got)
	}
}

// An update to a template that says the same in another form is none, and a change set of it has no changes.
func TestWhiteSpaceIsNoUpdate(t *testing.T) {
	s := stacks(t)
	defer s.live()()
	s.makes("Net", gateway)
	const spaced = "# the same\nResources:\n  Gateway: {Type: 'AWS::EC2::InternetGateway'}\n"
	if status, body := s.order(s.admin, "UpdateStack", "StackName", "Net", "TemplateBody", spaced); status != 400 || !strings.Contains(body, "No updates are to be performed.") {
		t.Error(status, body)
	}
	if status, body := s.order(s.admin, "CreateChangeSet", "StackName", "Net", "ChangeSetName", "same", "TemplateBody", spaced); status != 200 {
		t.Fatal(status, body)
	}
	if _, body := s.order(s.admin, "DescribeChangeSet", "StackName", "Net", "ChangeSetName", "same"); !strings.Contains(body, "<ExecutionStatus>UNAVAILABLE<") {
		t.Error(body)
	}
	if status, body := s.order(s.admin, "UpdateStack", "StackName", "Net", "TemplateBody", spaced+"  Other: {Type: 'AWS::EC2::InternetGateway'}\n"); status != 200 {
		t.Error(status, body)
	}
	if got := s.ends("Net"); got != "UPDATE_COMPLETE" {
		t.Error(got)
	}
}
