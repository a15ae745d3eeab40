// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// written keeps what is written to it.
type written struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

// The value of a NoEcho parameter is in no answer, event, object or line of the log, whatever a template does with it, and also where
// actions refuse it by its words.
func TestNoEchoNeverShows(t *testing.T) {
	const secret = "geheim-4711"
	var log written
	s := &stacked{}
	c := config(t)
	c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c.Run = func(f func(context.Context)) { s.loops = append(s.loops, f) }
	s.served = serveOf(t, c, func(c client.Client) client.Client {
		s.management = c
		return c
	})
	defer s.live()()
	const good = `{"Parameters": {"Word": {"Type": "String", "NoEcho": true}}, "Resources": {"VPC": {"Type": "AWS::EC2::VPC", "Metadata": {"Own": {"Ref": "Word"}}, "Properties": {"CidrBlock": "10.7.0.0/16"}}},
		"Outputs": {"O": {"Value": {"Fn::Sub": "a ${Word} b"}}}}`
	word := []string{"Parameters.member.1.ParameterKey", "Word", "Parameters.member.1.ParameterValue", secret}
	create := func(name, template string) (int, string) {
		t.Helper()
		return s.order(s.admin, "CreateStack", append([]string{"StackName", name, "TemplateBody", template}, word...)...)
	}
	for name, value := range map[string]string{"Refused": `{"Ref": "Word"}`, "Encoded": `{"Fn::Base64": {"Ref": "Word"}}`, "Joined": `{"Fn::Join": ["", ["10.", {"Ref": "Word"}]]}`} {
		if status, body := create(name, strings.Replace(good, `"10.7.0.0/16"`, value, 1)); status != 200 {
			t.Fatal(status, body)
		}
		if got := s.ends(name); got != "ROLLBACK_COMPLETE" {
			t.Error(name, got)
		}
	}
	if status, body := create("Net", good); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends("Net"); got != "CREATE_COMPLETE" {
		t.Fatal(got)
	}
	var answers []string
	ask := func(action string, members ...string) {
		t.Helper()
		_, body := s.order(s.admin, action, members...)
		answers = append(answers, action+": "+body)
	}
	ask("CreateChangeSet", append([]string{"StackName", "Net", "ChangeSetName", "set", "TemplateBody", strings.Replace(good, `"10.7.0.0/16"`, `{"Ref": "Word"}`, 1)}, word...)...)
	ask("DescribeChangeSet", "StackName", "Net", "ChangeSetName", "set")
	for _, name := range []string{"Net", "Refused", "Encoded", "Joined"} {
		for _, action := range []string{"DescribeStacks", "DescribeStackEvents", "DescribeStackResources", "ListStackResources", "GetTemplate", "GetTemplateSummary"} {
			ask(action, "StackName", name)
		}
		ask("DescribeStackResource", "StackName", name, "LogicalResourceId", "VPC")
	}
	// Who may update the stack, and does not know the value, learns it by no template.
	keeps := []string{"StackName", "Net", "Parameters.member.1.ParameterKey", "Word", "Parameters.member.1.UsePreviousValue", "true", "TemplateBody"}
	for name, c := range map[string]struct{ old, with, want string }{
		"it is no secret any more":    {`"NoEcho": true`, `"NoEcho": false`, "had NoEcho and would be shown"},
		"it is exported":              {`"Value": {"Fn::Sub": "a ${Word} b"}`, `"Value": {"Ref": "Word"}, "Export": {"Name": "x"}`, "do not export it"},
		"it is the name of an export": {`"Value": {"Fn::Sub": "a ${Word} b"}`, `"Value": "x", "Export": {"Name": {"Ref": "Word"}}`, "is shown to everybody"},
		"it is the name of an import": {`"10.7.0.0/16"`, `{"Fn::ImportValue": {"Ref": "Word"}}`, "No export named"},
		"it is the key of a mapping":  {`"10.7.0.0/16"`, `{"Fn::FindInMap": ["M", {"Ref": "Word"}, "b"]}`, "no key"},
		"it is the index of a list":   {`"10.7.0.0/16"`, `{"Fn::Select": [{"Ref": "Word"}, ["a"]]}`, "is not an index"},
		"it is a range":               {`"10.7.0.0/16"`, `{"Fn::Select": [0, {"Fn::Cidr": [{"Ref": "Word"}, 1, 8]}]}`, "Cidr"},
		"it is told by a pattern":     {`"Type": "String", "NoEcho": true`, `"Type": "String", "NoEcho": true, "AllowedPattern": "a"`, "does not match"},
	} {
		template := strings.Replace(good, c.old, c.with, 1)
		if strings.Contains(template, "FindInMap") {
			template = strings.Replace(template, `"Resources"`, `"Mappings": {"M": {"a": {"b": "c"}}}, "Resources"`, 1)
		}
		status, body := s.order(s.admin, "UpdateStack", append(keeps, template)...)
		if status != 400 || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s, want %q", name, status, body, c.want)
		}
		answers = append(answers, name+": "+body)
	}
	var objects v1alpha1.StackList
	if err := s.management.List(t.Context(), &objects); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(objects)
	if err != nil || len(objects.Items) != 4 {
		t.Fatal(len(objects.Items), err)
	}
	for _, text := range append(answers, "the objects: "+string(raw), "the log: "+log.String()) {
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("%s shows in %.40s: …%s…", form, text, text[max(0, at-200):min(len(text), at+100)])
			}
		}
	}
	if !strings.Contains(log.String(), "CreateVpc") {
		t.Error("the log has no line of a request of a stack")
	}
}

// Whoever has all rights to CloudFormation and no others gets nothing by the stacks of others: not by deleting, changing or rolling
// them back, nor by their roles, exports or parameters.
func TestAStrangersStackGivesNothing(t *testing.T) {
	s := stacks(t)
	defer s.live()()
	const template = `{"Parameters": {"Name": {"Type": "String", "Default": "own"}}, "Resources": {"VPC": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.7.0.0/16", "Tags": [{"Key": "Name", "Value": {"Ref": "Name"}}]}}}}`
	if status, body := s.order(s.admin, "CreateStack", "StackName", "Net", "TemplateBody", template); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.ends("Net"); got != "CREATE_COMPLETE" {
		t.Fatal(got)
	}
	untouched := func() {
		t.Helper()
		if _, vpcs := s.send(t.Context(), s.admin, "ec2 DescribeVpcs"); strings.Count(vpcs, "<vpcId>") != 1 || !strings.Contains(vpcs, "<value>own</value>") {
			t.Error(vpcs)
		}
	}
	stranger := s.user("stranger", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"cloudformation:*","Resource":"*"}]}`)
	ends := func(want, action string, members ...string) {
		t.Helper()
		if status, body := s.order(stranger, action, append([]string{"StackName", "Net"}, members...)...); status != 200 {
			t.Fatal(action, status, body)
		}
		if got := s.ends("Net"); got != want {
			t.Errorf("%s: %s, want %s", action, got, want)
		}
		untouched()
	}
	ends("UPDATE_ROLLBACK_FAILED", "UpdateStack", "UsePreviousTemplate", "true", "Parameters.member.1.ParameterKey", "Name", "Parameters.member.1.ParameterValue", "taken")
	ends("UPDATE_ROLLBACK_FAILED", "ContinueUpdateRollback")
	ends("DELETE_FAILED", "DeleteStack")
	if _, events := s.order(s.admin, "DescribeStackEvents", "StackName", "Net"); !strings.Contains(events, "is not authorized to perform: ec2:") {
		t.Error(events)
	}

	// A role that others may pass, in their change set or by a name.
	for _, request := range []string{
		"CreateRole " + url.Values{"RoleName": {"cfn"}, "AssumeRolePolicyDocument": {`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"cloudformation.amazonaws.com"},"Action":"sts:AssumeRole"}]}`}}.Encode(),
		"PutRolePolicy " + url.Values{"RoleName": {"cfn"}, "PolicyName": {"all"}, "PolicyDocument": {`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`}}.Encode(),
	} {
		if status, body := s.send(t.Context(), s.admin, "iam "+request); status != 200 {
			t.Fatal(status, body)
		}
	}
	const role = "arn:aws:iam::000000000000:role/cfn"
	if status, body := s.order(s.admin, "CreateChangeSet", "StackName", "Set", "ChangeSetName", "first", "ChangeSetType", "CREATE", "TemplateBody", template, "RoleARN", role); status != 200 {
		t.Fatal(status, body)
	}
	for action, members := range map[string][]string{
		"ExecuteChangeSet":       {"StackName", "Set", "ChangeSetName", "first"},
		"CreateChangeSet":        {"StackName", "Own", "ChangeSetName", "first", "ChangeSetType", "CREATE", "TemplateBody", template, "RoleARN", role},
		"CreateStack":            {"StackName", "Own", "TemplateBody", template, "RoleARN", role},
		"UpdateStack":            {"StackName", "Net", "TemplateBody", template, "RoleARN", role},
		"DeleteStack":            {"StackName", "Net", "RoleARN", role},
		"ContinueUpdateRollback": {"StackName", "Net", "RoleARN", role},
		"RollbackStack":          {"StackName", "Net", "RoleARN", role},
	} {
		if status, body := s.order(stranger, action, members...); status != 403 || !strings.Contains(body, "iam:PassRole") {
			t.Errorf("%s: %d %s", action, status, body)
		}
	}
	untouched()

	// A parameter of Systems Manager is read with the stranger's rights.
	const parameter = `{"Parameters": {"P": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id"}},
		"Conditions": {"No": {"Fn::Equals": ["a", "b"]}}, "Resources": {"VPC": {"Type": "AWS::EC2::VPC", "Condition": "No", "Properties": {"CidrBlock": "10.7.0.0/16"}}}, "Outputs": {"P": {"Value": {"Ref": "P"}}}}`
	if status, body := s.order(stranger, "CreateStack", "StackName", "Own", "TemplateBody", parameter); status != 400 || !strings.Contains(body, "ssm:GetParameter") {
		t.Errorf("%d %s", status, body)
	}
}
