// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// Policies for services that are not here are kept as they are written. The files have the actions and condition keys
// of what the EBS driver, the load balancer controller, Cluster Autoscaler, Karpenter, S3's and KMS's guides publish.
func TestPublishedPoliciesAreKept(t *testing.T) {
	w := newWorld(t, nil)
	c, ctx := w.iam(w.admin()), t.Context()
	files, err := filepath.Glob("testdata/published/*.json")
	if err != nil || len(files) != 6 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		made, err := c.CreatePolicy(ctx, &iam.CreatePolicyInput{PolicyName: &name, PolicyDocument: aws.String(string(raw))})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		version, err := c.GetPolicyVersion(ctx, &iam.GetPolicyVersionInput{PolicyArn: made.Policy.Arn, VersionId: aws.String("v1")})
		if err != nil {
			t.Fatal(err)
		}
		if kept, err := url.PathUnescape(*version.PolicyVersion.Document); err != nil || kept != string(raw) {
			t.Errorf("%s is kept as %s, %v", name, kept, err)
		}
	}
}

// The effect of a condition on an absent key is that on AWS, and the log names those that no request carries.
func TestAbsentKeys(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	alice := w.user("alice")
	for condition, want := range map[string]struct{ outcome, warning string }{
		`{"StringEquals":{"aws:PrincipalOrgID":"o-1"}}`:             {"AccessDenied", "aws:PrincipalOrgID here, so that this condition never holds"},
		`{"StringEqualsIfExists":{"aws:PrincipalOrgID":"o-1"}}`:     {"", "this condition always holds"},
		`{"StringNotEquals":{"aws:SourceVpce":"vpce-1"}}`:           {"", "aws:SourceVpce here, so that this condition always holds"},
		`{"Null":{"aws:SourceVpc":"true"}}`:                         {"", "aws:SourceVpc here, so that this condition always holds"},
		`{"Null":{"aws:SourceVpc":"false"}}`:                        {"AccessDenied", "never holds"},
		`{"ForAllValues:StringEquals":{"aws:CalledVia":"x"}}`:       {"", "always holds"},
		`{"ForAnyValue:StringEquals":{"aws:CalledVia":"x"}}`:        {"AccessDenied", "never holds"},
		`{"StringEquals":{"aws:RequestedRegion":"eu-west-1"}}`:      {"", ""},
		`{"StringEquals":{"aws:ResourceAccount":"000000000000"}}`:   {"", ""},
		`{"IpAddress":{"aws:SourceIp":"127.0.0.0/8"}}`:              {"", ""},
		`{"Bool":{"aws:SecureTransport":"false"}}`:                  {"", ""}, // the test's server speaks plain HTTP
		`{"StringEquals":{"aws:PrincipalType":"User"}}`:             {"", ""},
		`{"StringEquals":{"aws:username":"${aws:username}"}}`:       {"", ""},
		`{"StringEquals":{"aws:username":"${aws:PrincipalTag/x}"}}`: {"AccessDenied", ""},
	} {
		document := `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"iam:ListUsers","Resource":"*","Condition":` + condition + `}}`
		before := len(w.log.String())
		_, err := w.iam(w.admin()).PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: aws.String("alice"), PolicyName: aws.String("p"), PolicyDocument: &document})
		if err != nil {
			t.Fatalf("%s: %v", condition, err)
		}
		if told := w.log.String()[before:]; !strings.Contains(told, want.warning) || strings.Contains(told, "warnings=") != (want.warning != "") {
			t.Errorf("%s is logged as %s", condition, told)
		}
		_, err = w.iam(alice).ListUsers(ctx, &iam.ListUsersInput{})
		w.wants(condition, err, want.outcome)
	}
}

// A trust policy may say on whose behalf a service asks, as the page on the authenticator recommends. Instances'
// requests do not say it.
func TestTrustWithASource(t *testing.T) {
	w := newWorld(t, nil)
	for name, condition := range map[string]string{
		"ssm":     `{"StringEquals":{"aws:SourceAccount":"000000000000"}}`,
		"fargate": `{"ArnLike":{"aws:SourceArn":"arn:aws:eks:eu-west-1:000000000000:fargateprofile/blue/*"}}`,
		"anywhere": `{"ArnEquals":{"aws:SourceArn":"arn:aws:rolesanywhere:eu-west-1:000000000000:trust-anchor/1"},` +
			`"StringEquals":{"sts:RoleSessionName":"${aws:PrincipalTag/x509Subject/CN}"}}`,
	} {
		w.role(name, `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"`+name+`.amazonaws.com","AWS":"000000000000"},"Action":["sts:AssumeRole","sts:TagSession"],"Condition":`+condition+`}]}`)
		_, err := w.sts(w.admin()).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: roleARN(name), RoleSessionName: aws.String("work")})
		w.wants(name, err, "AccessDenied")
	}
}

// The public of an account are its users and roles, and nobody's policy has to say so again.
func TestTrustOfEverybody(t *testing.T) {
	w := newWorld(t, nil)
	alice := w.user("alice")
	w.role("public", trusting("AWS", "*"))
	assume := func() error {
		_, err := w.sts(alice).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: roleARN("public"), RoleSessionName: aws.String("work")})
		return err
	}
	w.wants("a user without policies", assume(), "")
	deny := `{"Version":"2012-10-17","Statement":{"Effect":"Deny","Action":"sts:*","Resource":"*"}}`
	_, err := w.iam(w.admin()).PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: aws.String("alice"), PolicyName: aws.String("p"), PolicyDocument: &deny})
	w.wants("a deny", err, "")
	w.wants("a user whose policy denies it", assume(), "AccessDenied")
	if _, err := w.iam(w.admin()).CreateRole(t.Context(), &iam.CreateRoleInput{
		RoleName: aws.String("bad"), AssumeRolePolicyDocument: aws.String(`{"Statement":{"Effect":"Allow","Principal":"*","Action":"sts:AssumeRole","Condition":{"StringEquals":{":nobody":"x"}}}}`),
		Tags: []iamtypes.Tag{},
	}); code(err) != "MalformedPolicyDocument" || !strings.Contains(err.Error(), "SERVICE:NAME") {
		t.Error("a key of no service:", err)
	}
}
