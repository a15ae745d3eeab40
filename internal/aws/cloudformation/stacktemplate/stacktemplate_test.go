// SPDX-License-Identifier: Apache-2.0

package stacktemplate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/cloudformation/stacktemplate"
)

// parse reads a template that must be valid.
func parse(t testing.TB, body string) *stacktemplate.Template {
	t.Helper()
	template, err := stacktemplate.Parse([]byte(body))
	if err != nil {
		t.Fatalf("%v in\n%s", err, body)
	}
	return template
}

// environment has every pseudo parameter, three zones, any export, and no resource.
func environment() stacktemplate.Env {
	return stacktemplate.Env{
		Pseudo: stacktemplate.Pseudo{
			Region: "eu-west-1", AccountID: "123456789012", Partition: "aws", StackID: "arn:aws:cloudformation:eu-west-1:123456789012:stack/test/1",
			StackName: "test", URLSuffix: "amazonaws.com", NotificationARNs: []string{"arn:aws:sns:eu-west-1:123456789012:topic"},
		},
		Zones: []string{"eu-west-1a", "eu-west-1b", "eu-west-1c"},
		Imports: func(name string) (string, error) {
			if strings.Contains(name, "missing") {
				return "", errors.New("no export has this name")
			}
			return name + "-1," + name + "-2", nil
		},
	}
}

// made answers for resources that exist.
type made map[string]bool

func (m made) resource(id string) (ref string, attributes map[string]any, ok bool) {
	attributes = map[string]any{"Ipv6CidrBlocks": []string{"2001:db8:0:ff00::/56"}, "CidrBlock": "10.0.0.0/16", "Number": 7}
	for _, name := range []string{
		"AllocationId", "Arn", "CertificateAuthorityData", "ClusterSecurityGroupId", "Endpoint", "LatestVersionNumber", "VpcId",
	} {
		attributes[name] = id + "-" + name
	}
	return "id-of-" + id, attributes, m[id]
}

// problemsOf are the problems of an error, a line each.
func problemsOf(t testing.TB, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var invalid *stacktemplate.Invalid
	if !errors.As(err, &invalid) {
		t.Fatalf("%T is not *Invalid: %v", err, err)
	}
	if len(invalid.Problems) == 0 || !strings.Contains(err.Error(), invalid.Problems[0]) {
		t.Fatalf("%q with the problems %q", err, invalid.Problems)
	}
	return invalid.Problems
}

// expect compares problems with the beginnings or parts that each must have: "path: … part".
func expect(t testing.TB, what string, err error, want ...string) {
	t.Helper()
	got := problemsOf(t, err)
	for _, part := range want {
		if !slices.ContainsFunc(got, func(problem string) bool { return strings.Contains(problem, part) }) {
			t.Errorf("%s\nno problem has %q:\n%s", what, part, strings.Join(got, "\n"))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s\n%d problems, want %d:\n%s", what, len(got), len(want), strings.Join(got, "\n"))
	}
}

// jsonOf is a value for comparisons. Numbers keep their text, keys are sorted.
func jsonOf(t testing.TB, value any) string {
	t.Helper()
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// withProperty is a template whose resource R has one property, P, and that has whatever functions may name.
func withProperty(expression string) string {
	return fmt.Sprintf(`{"Transform": "AWS::LanguageExtensions",
"Parameters": {"Text": {"Type": "String", "Default": "text"}, "List": {"Type": "CommaDelimitedList", "Default": "a,b,c"},
  "Number": {"Type": "Number", "Default": 5}, "Secret": {"Type": "String", "NoEcho": true, "Default": "s3cr3t"}},
"Mappings": {"Map": {"eu-west-1": {"one": "1", "list": ["x", "y"]}, "text": {"one": "of text"}}},
"Conditions": {"Yes": {"Fn::Equals": ["a", "a"]}, "No": {"Fn::Not": [{"Condition": "Yes"}]},
  "Broken": {"Fn::Equals": [{"Fn::Select": ["9", {"Ref": "List"}]}, "a"]}},
"Resources": {"Other": {"Type": "T"}, "Never": {"Type": "T", "Condition": "No"}, "R": {"Type": "T", "Properties": {"P": %s}}}}`, expression)
}

// evaluate evaluates an expression as the property of a resource, with the defaults of withProperty.
func evaluate(t testing.TB, expression string) (any, error) {
	t.Helper()
	template := parse(t, withProperty(expression))
	env := environment()
	env.Resource = made{"Other": true}.resource
	var err error
	if env.Parameters, err = template.Arguments(nil); err != nil {
		t.Fatal(err)
	}
	properties, err := template.Properties(env, "R")
	if err != nil {
		return nil, err
	}
	value, ok := properties["P"]
	if ok && value == nil {
		t.Fatalf("%s evaluates to nil", expression)
	}
	return value, nil
}
