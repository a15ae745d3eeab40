// SPDX-License-Identifier: Apache-2.0

package stacktemplate_test

import (
	"slices"
	"testing"
)

func TestSummary(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		`Resources: {R: {Type: "AWS::EC2::VPC", Properties: {RoleName: a}}}`:                                                                nil,
		`Resources: {R: {Type: "AWS::IAM::Role"}}`:                                                                                          {"CAPABILITY_IAM"},
		`Resources: {R: {Type: "AWS::IAM::Role", Properties: {RoleName: a}}}`:                                                               {"CAPABILITY_NAMED_IAM"},
		`Resources: {R: {Type: "AWS::IAM::Role", Properties: {RoleName: !Sub a}}}`:                                                          {"CAPABILITY_NAMED_IAM"},
		`Resources: {R: {Type: "AWS::IAM::Role", Properties: {RoleName: !Ref "AWS::NoValue"}}}`:                                             {"CAPABILITY_IAM"},
		`Resources: {R: {Type: "AWS::IAM::Policy", Properties: {PolicyName: a}}}`:                                                           {"CAPABILITY_IAM"},
		`Resources: {R: {Type: "AWS::IAM::ManagedPolicy", Properties: {ManagedPolicyName: a}}}`:                                             {"CAPABILITY_NAMED_IAM"},
		`Resources: {R: {Type: "AWS::IAM::InstanceProfile", Properties: {InstanceProfileName: a}}, S: {Type: "AWS::IAM::OIDCProvider"}}`:    {"CAPABILITY_NAMED_IAM"},
		"Transform: AWS::LanguageExtensions\nConditions: {Nope: !Equals [a, b]}\nResources: {R: {Type: 'AWS::IAM::Role', Condition: Nope}}": {"CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"},
	} {
		summary := parse(t, body).Summary()
		if !slices.Equal(summary.Capabilities, want) || (summary.CapabilitiesReason == "") != (want == nil) {
			t.Errorf("%s needs %q (%s), want %q", body, summary.Capabilities, summary.CapabilitiesReason, want)
		}
		if missing := summary.Missing([]string{"CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"}); missing != nil {
			t.Errorf("%s: %q is missing", body, missing)
		}
		if missing := summary.Missing([]string{"CAPABILITY_OTHER"}); !slices.Equal(missing, want) {
			t.Errorf("%s: %q is missing, want %q", body, missing, want)
		}
	}
	summary := parse(t, `
Description: d
Metadata: {A: [1, !Ref B]}
Parameters: {Z: {Type: String}, A: {Type: Number, Default: 1}}
Resources: {R: {Type: "AWS::IAM::Role", Properties: {RoleName: x}}, S: {Type: "AWS::IAM::Role"}, V: {Type: "AWS::EC2::VPC"}}`).Summary()
	if got, want := summary.CapabilitiesReason, "The following resource(s) require capabilities: [AWS::IAM::Role]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if summary.Description != "d" || summary.Metadata != `{"A":[1,{"Ref":"B"}]}` || !slices.Equal(summary.ResourceTypes, []string{"AWS::EC2::VPC", "AWS::IAM::Role"}) {
		t.Errorf("%+v", summary)
	}
	if p := summary.Parameters; len(p) != 2 || p[0].Name != "Z" || p[0].Default != nil || p[1].Name != "A" || *p[1].Default != "1" {
		t.Errorf("%+v", p)
	}
	if missing := summary.Missing([]string{"CAPABILITY_IAM"}); !slices.Equal(missing, []string{"CAPABILITY_NAMED_IAM"}) {
		t.Errorf("%q: CAPABILITY_IAM does not cover names", missing)
	}
}
