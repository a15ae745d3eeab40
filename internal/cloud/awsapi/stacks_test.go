// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestAStackIsMadeChangedAndDeleted(t *testing.T) {
	s := stacks(t)
	defer s.live()()
	status, body := s.order(s.admin, "CreateStack", "StackName", "Net", "TemplateBody", network, "Capabilities.member.1", "CAPABILITY_IAM", "Tags.member.1.Key", "team", "Tags.member.1.Value", "a", "ClientRequestToken", "one")
	if status != 200 {
		t.Fatal(status, body)
	}
	id := regexp.MustCompile(`arn:aws:cloudformation:[^<]*`).FindString(body)
	if _, again := s.order(s.admin, "CreateStack", "StackName", "Net", "TemplateBody", network, "Capabilities.member.1", "CAPABILITY_IAM", "ClientRequestToken", "one"); !strings.Contains(again, id) {
		t.Errorf("the same request answers %s", again)
	}
	var events string
	if got := s.ends("Net"); got != "CREATE_COMPLETE" {
		_, events = s.order(s.admin, "DescribeStackEvents", "StackName", id)
		t.Fatal(got, events)
	}
	_, shown := s.order(s.admin, "DescribeStacks", "StackName", id)
	for _, want := range []string{"<ParameterValue>****</ParameterValue>", "<ExportName>Net::VPC</ExportName>", "<OutputValue>vpc-", "<OutputValue>sg-", ":role/Net-Role-", "<OutputValue>****</OutputValue>"} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %s in %s", want, shown)
		}
	}
	if strings.Contains(shown, "abcdefgh") {
		t.Errorf("a NoEcho value shows: %s", shown)
	}
	if _, vpcs := s.send(t.Context(), s.admin, "ec2 DescribeVpcs"); !strings.Contains(vpcs, "<key>team</key>") || !strings.Contains(vpcs, "<value>first</value>") {
		t.Errorf("tags of the VPC: %s", vpcs)
	}
	if _, templates := s.send(t.Context(), s.admin, "ec2 DescribeLaunchTemplates"); !strings.Contains(templates, "<key>team</key>") {
		t.Errorf("tags of the launch template: %s", templates)
	}
	status, body = s.order(s.admin, "UpdateStack", "StackName", "Net", "UsePreviousTemplate", "true", "Capabilities.member.1", "CAPABILITY_IAM", "Parameters.member.1.ParameterKey", "Name", "Parameters.member.1.ParameterValue", "second")
	if status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends("Net"); got != "UPDATE_COMPLETE" {
		_, events = s.order(s.admin, "DescribeStackEvents", "StackName", id)
		t.Fatal(got, events)
	}
	if _, vpcs := s.send(t.Context(), s.admin, "ec2 DescribeVpcs"); !strings.Contains(vpcs, "<value>second</value>") {
		t.Errorf("tags of the VPC: %s", vpcs)
	}
	if status, body = s.order(s.admin, "DeleteStack", "StackName", "Net"); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends(id); got != "DELETE_COMPLETE" {
		_, events = s.order(s.admin, "DescribeStackEvents", "StackName", id)
		t.Fatal(got, events)
	}
	s.nothingLeft()
}

// A failure rolls back everything that was made.
func TestAFailureRollsBack(t *testing.T) {
	s := stacks(t)
	defer s.live()()
	broken := strings.Replace(network, `"InstanceType": "t3.medium"`, `"InstanceType": "t3.medium", "ImageId": "nothing"`, 1)
	broken = strings.Replace(broken, `"LaunchTemplateData"`, `"LaunchTemplateName": "a/b c", "LaunchTemplateData"`, 1)
	if status, body := s.order(s.admin, "CreateStack", "StackName", "Net", "TemplateBody", broken, "Capabilities.member.1", "CAPABILITY_NAMED_IAM"); status != 200 {
		t.Fatal(status, body)
	}
	var events string
	if got := s.ends("Net"); got != "ROLLBACK_COMPLETE" {
		_, events = s.order(s.admin, "DescribeStackEvents", "StackName", "Net")
		t.Fatal(got, events)
	}
	s.nothingLeft()
}

// Rights to CloudFormation alone make nothing, and policies may allow actions for stacks alone.
func TestStacksHaveTheRightsOfTheirCaller(t *testing.T) {
	s := stacks(t)
	defer s.live()()
	template := `{"Resources": {"VPC": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.7.0.0/16"}}}}`
	alone := s.user("alone", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"cloudformation:*","Resource":"*"}]}`)
	if status, body := s.order(alone, "CreateStack", "StackName", "Net", "TemplateBody", template); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends("Net"); got != "ROLLBACK_COMPLETE" {
		t.Error(got)
	}
	if _, events := s.order(alone, "DescribeStackEvents", "StackName", "Net"); !strings.Contains(events, "is not authorized to perform: ec2:") {
		t.Error(events)
	}
	s.nothingLeft()
	through := s.user("through", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"cloudformation:*","Resource":"*"},
		{"Effect":"Allow","Action":"ec2:*","Resource":"*","Condition":{"ForAnyValue:StringEquals":{"aws:CalledVia":"cloudformation.amazonaws.com"}}}]}`)
	if status, body := s.send(t.Context(), through, "ec2 DescribeVpcs"); status == 200 {
		t.Error(body)
	}
	if status, body := s.order(through, "CreateStack", "StackName", "Other", "TemplateBody", template); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends("Other"); got != "CREATE_COMPLETE" {
		t.Error(got)
	}
}

// A role that was passed makes the resources, and nobody passes one without the right to it.
func TestStacksActWithARole(t *testing.T) {
	s := stacks(t)
	defer s.live()()
	trust := url.Values{"RoleName": {"cfn"}, "AssumeRolePolicyDocument": {`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"cloudformation.amazonaws.com"},"Action":"sts:AssumeRole"}]}`}}
	may := url.Values{"RoleName": {"cfn"}, "PolicyName": {"ec2"}, "PolicyDocument": {`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"ec2:*","Resource":"*"}]}`}}
	for _, request := range []string{"CreateRole " + trust.Encode(), "PutRolePolicy " + may.Encode()} {
		if status, body := s.send(t.Context(), s.admin, "iam "+request); status != 200 {
			t.Fatal(status, body)
		}
	}
	const role = "arn:aws:iam::000000000000:role/cfn"
	alone := s.user("alone", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"cloudformation:*","Resource":"*"}]}`)
	passes := s.user("passes", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"cloudformation:*","Resource":"*"},
		{"Effect":"Allow","Action":"iam:PassRole","Resource":"`+role+`","Condition":{"StringEquals":{"iam:PassedToService":"cloudformation.amazonaws.com"}}}]}`)
	const template = `{"Resources": {"VPC": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.7.0.0/16"}}}}`
	if status, body := s.order(alone, "CreateStack", "StackName", "Net", "TemplateBody", template, "RoleARN", role); status != 403 || !strings.Contains(body, "iam:PassRole") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := s.order(passes, "CreateStack", "StackName", "Net", "TemplateBody", template, "RoleARN", "arn:aws:iam::000000000000:role/none"); status == 200 {
		t.Error(body)
	}
	if status, body := s.order(passes, "CreateStack", "StackName", "Net", "TemplateBody", template, "RoleARN", role); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends("Net"); got != "CREATE_COMPLETE" {
		t.Error(got)
	}
	if status, body := s.order(alone, "DeleteStack", "StackName", "Net"); status != 200 { // the stack goes on with its role
		t.Error(status, body)
	}
	if got := s.ends("Net"); !strings.Contains(got, "does not exist") {
		t.Error(got)
	}
	s.nothingLeft()
}

// A key that ends stops the stack, and another one goes on with it.
func TestAKeyThatEndsStopsAStack(t *testing.T) {
	s := stacks(t)
	user := s.user("leaves", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["cloudformation:*","ec2:*"],"Resource":"*"}]}`)
	status, body := s.order(user, "CreateStack", "StackName", "Net", "TemplateBody", `{"Resources": {"VPC": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.7.0.0/16"}}}}`, "OnFailure", "DO_NOTHING")
	if status != 200 {
		t.Fatal(status, body)
	}
	if status, body := s.send(t.Context(), s.admin, "iam DeleteAccessKey UserName=leaves&AccessKeyId="+user.AccessKeyID); status != 200 {
		t.Fatal(status, body)
	}
	defer s.live()()
	if got := s.ends("Net"); got != "CREATE_FAILED" {
		t.Error(got)
	}
	if _, events := s.order(s.admin, "DescribeStackEvents", "StackName", "Net"); !strings.Contains(events, "InvalidClientTokenId") {
		t.Error(events)
	}
	if status, body := s.order(s.admin, "DeleteStack", "StackName", "Net"); status != 200 {
		t.Error(status, body)
	}
	if got := s.ends("Net"); !strings.Contains(got, "does not exist") {
		t.Error(got)
	}
}

// A change set describes a change, which is made when the set is executed; an export that is imported stays.
func TestChangeSetsAndExports(t *testing.T) {
	s := stacks(t)
	defer s.live()()
	const exports = `{"Parameters": {"Name": {"Type": "String", "Default": "a"}}, "Resources": {"VPC": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.7.0.0/16", "Tags": [{"Key": "Name", "Value": {"Ref": "Name"}}]}}},
		"Outputs": {"V": {"Value": {"Ref": "VPC"}, "Export": {"Name": "shared"}}}}`
	const imports = `{"Resources": {"Group": {"Type": "AWS::EC2::SecurityGroup", "Properties": {"GroupDescription": "imports", "VpcId": {"Fn::ImportValue": "shared"}}}}}`
	if status, body := s.order(s.admin, "CreateChangeSet", "StackName", "Net", "ChangeSetName", "first", "ChangeSetType", "CREATE", "TemplateBody", exports); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends("Net"); got == "CREATE_COMPLETE" {
		t.Error("the stack is made before its change set is executed")
	}
	if _, body := s.order(s.admin, "DescribeChangeSet", "StackName", "Net", "ChangeSetName", "first"); !strings.Contains(body, "<Action>Add</Action>") || !strings.Contains(body, "<ExecutionStatus>AVAILABLE") {
		t.Error(body)
	}
	if status, body := s.order(s.admin, "ExecuteChangeSet", "StackName", "Net", "ChangeSetName", "first"); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends("Net"); got != "CREATE_COMPLETE" {
		t.Fatal(got)
	}
	if status, body := s.order(s.admin, "CreateChangeSet", "StackName", "Net", "ChangeSetName", "same", "UsePreviousTemplate", "true"); status != 200 {
		t.Fatal(status, body)
	}
	if _, body := s.order(s.admin, "DescribeChangeSet", "StackName", "Net", "ChangeSetName", "same"); !strings.Contains(body, "<Status>FAILED</Status>") || !strings.Contains(body, "didn't contain changes") {
		t.Error(body)
	}
	if status, body := s.order(s.admin, "ExecuteChangeSet", "StackName", "Net", "ChangeSetName", "same"); status != 400 || !strings.Contains(body, "InvalidChangeSetStatus") {
		t.Error(status, body)
	}
	twice := []string{"Tags.member.1.Key", "team", "Tags.member.1.Value", "a", "Tags.member.2.Key", "team", "Tags.member.2.Value", "b"}
	if status, body := s.order(s.admin, "CreateChangeSet", append([]string{"StackName", "Net", "ChangeSetName", "tags", "UsePreviousTemplate", "true"}, twice...)...); status != 200 {
		t.Error("a change set whose tags are those of the stack and others, as eksctl's:", status, body)
	}
	if _, body := s.order(s.admin, "DescribeChangeSet", "StackName", "Net", "ChangeSetName", "tags"); !strings.Contains(body, "<Value>b</Value>") || strings.Contains(body, "<Value>a</Value>") {
		t.Error("a key that is there twice has not its last value:", body)
	}
	if status, body := s.order(s.admin, "CreateStack", append([]string{"StackName", "User", "TemplateBody", imports}, twice...)...); status != 400 || !strings.Contains(body, "Duplicate tag key") {
		t.Error(status, body)
	}
	if status, body := s.order(s.admin, "CreateStack", "StackName", "User", "TemplateBody", imports); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends("User"); got != "CREATE_COMPLETE" {
		t.Fatal(got)
	}
	if status, body := s.order(s.admin, "DeleteStack", "StackName", "Net"); status != 400 || !strings.Contains(body, "Export shared cannot be deleted as it is in use by User") {
		t.Error(status, body)
	}
	if status, body := s.order(s.admin, "CreateStack", "StackName", "Other", "TemplateBody", exports); status != 400 || !strings.Contains(body, "already exported by stack Net") {
		t.Error(status, body)
	}
}

// The loop is ended again and again, as by kill -9 between two writes, and each resource is there once.
func TestAStackGoesOn(t *testing.T) {
	s := stacks(t)
	if status, body := s.order(s.admin, "CreateStack", "StackName", "Net", "TemplateBody", network, "Capabilities.member.1", "CAPABILITY_IAM"); status != 200 {
		t.Fatal(status, body)
	}
	for range 12 {
		kill := s.live()
		<-time.After(60 * time.Millisecond)
		kill()
	}
	defer s.live()()
	if got := s.ends("Net"); got != "CREATE_COMPLETE" {
		_, events := s.order(s.admin, "DescribeStackEvents", "StackName", "Net")
		t.Fatal(got, events)
	}
	s.eachIsThereOnce()
}

// All problems of a template are told at once, and nothing is made.
func TestStacksAreRefused(t *testing.T) {
	s := stacks(t)
	for name, c := range map[string]struct {
		members []string
		want    []string
	}{
		"no capability": {[]string{"TemplateBody", network}, []string{"InsufficientCapabilitiesException", "CAPABILITY_IAM"}},
		"several problems": {
			[]string{"TemplateBody", `{"Resources": {"A": {"Type": "AWS::S3::Bucket"}, "B": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": {"Fn::GetAtt": ["C", "X"]}, "Size": 1}}}}`},
			[]string{"ValidationError", "AWS::S3::Bucket", "Size", "Resources.B.Properties.CidrBlock"},
		},
		"missing properties": {[]string{"TemplateBody", `{"Resources": {"A": {"Type": "AWS::EC2::Subnet"}}}`}, []string{"ValidationError", "needs the property VpcId"}},
		"a missing export":   {[]string{"TemplateBody", `{"Resources": {"A": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": {"Fn::ImportValue": "none"}}}}}`}, []string{"ValidationError", "No export named none found"}},
		"a URL":              {[]string{"TemplateURL", "https://example.com/a"}, []string{"ValidationError", "TemplateURL: Muster does not have it"}},
		"no template":        {nil, []string{"ValidationError", "Either Template URL or Template Body must be specified"}},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := s.order(s.admin, "CreateStack", append([]string{"StackName", "Net"}, c.members...)...)
			if status != 400 {
				t.Errorf("%d %s", status, body)
			}
			for _, want := range c.want {
				if !strings.Contains(body, want) {
					t.Errorf("no %q in %s", want, body)
				}
			}
		})
	}
	if _, body := s.order(s.admin, "ListStacks"); strings.Contains(body, "<StackName>") {
		t.Errorf("a refused stack is there: %s", body)
	}
}
