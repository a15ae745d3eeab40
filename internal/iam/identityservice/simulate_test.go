// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// told is an evaluation in one line.
func told(e types.EvaluationResult) string {
	var matched []string
	for _, m := range e.MatchedStatements {
		matched = append(matched, *m.SourcePolicyId+"/"+string(m.SourcePolicyType))
	}
	boundary := ""
	if d := e.PermissionsBoundaryDecisionDetail; d != nil {
		boundary = fmt.Sprintf(" boundary=%v", d.AllowedByPermissionsBoundary)
	}
	return fmt.Sprintf("%s %s %s %v missing=%v%s", *e.EvalActionName, *e.EvalResourceName, e.EvalDecision, matched, e.MissingContextValues, boundary)
}

func TestSimulatePrincipalPolicy(t *testing.T) {
	w := newWorld(t, nil)
	admin, ctx := w.iam(w.admin()), t.Context()
	w.user("alice")
	alice := aws.String("arn:aws:iam::" + account + ":user/alice")
	own := w.policy("own", `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"iam:GetUser","Resource":"arn:aws:iam::*:user/${aws:username}"}}`)
	_, err := admin.AttachUserPolicy(ctx, &iam.AttachUserPolicyInput{UserName: aws.String("alice"), PolicyArn: own})
	w.wants("attaching", err, "")
	w.inline("alice", `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"ec2:*","Resource":"*","Condition":{"StringNotEquals":{"ec2:Region":"eu-west-1"}}},`+
		`{"Effect":"Allow","Action":"ec2:Run*","Resource":"*"}]}`)
	simulate := func(in *iam.SimulatePrincipalPolicyInput) []string {
		t.Helper()
		out, err := admin.SimulatePrincipalPolicy(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, e := range out.EvaluationResults {
			all = append(all, told(e))
		}
		return all
	}
	user := func(name string) string { return "arn:aws:iam::" + account + ":user/" + name }
	for name, c := range map[string]struct {
		in   iam.SimulatePrincipalPolicyInput
		want []string
	}{
		"who it is": {iam.SimulatePrincipalPolicyInput{ActionNames: []string{"iam:GetUser"}, ResourceArns: []string{user("alice"), user("bob")}}, []string{
			"iam:GetUser " + user("alice") + " allowed [own/user-managed] missing=[ec2:Region]",
			"iam:GetUser " + user("bob") + " implicitDeny [] missing=[ec2:Region]",
		}},
		"a key that is missing": {iam.SimulatePrincipalPolicyInput{ActionNames: []string{"ec2:RunInstances"}}, []string{
			"ec2:RunInstances * explicitDeny [user_alice_own/user] missing=[ec2:Region]",
		}},
		"a key that is passed": {iam.SimulatePrincipalPolicyInput{
			ActionNames:    []string{"ec2:RunInstances", "ec2:StopInstances"},
			ContextEntries: []types.ContextEntry{{ContextKeyName: aws.String("EC2:Region"), ContextKeyType: types.ContextKeyTypeEnumString, ContextKeyValues: []string{"eu-west-1"}}},
		}, []string{
			"ec2:RunInstances * allowed [user_alice_own/user] missing=[]",
			"ec2:StopInstances * implicitDeny [] missing=[]",
		}},
		"a policy beside": {iam.SimulatePrincipalPolicyInput{ActionNames: []string{"s3:GetObject"}, PolicyInputList: []string{`{"Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*"}}`}}, []string{
			"s3:GetObject * allowed [PolicyInputList.1/none] missing=[ec2:Region]",
		}},
		"a boundary": {iam.SimulatePrincipalPolicyInput{
			ActionNames: []string{"iam:GetUser"}, ResourceArns: []string{user("alice")},
			PermissionsBoundaryPolicyInputList: []string{`{"Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*"}}`},
		}, []string{"iam:GetUser " + user("alice") + " implicitDeny [] missing=[ec2:Region] boundary=false"}},
		"another caller": {iam.SimulatePrincipalPolicyInput{ActionNames: []string{"iam:GetUser"}, ResourceArns: []string{user("admin")}, CallerArn: aws.String(user("admin"))}, []string{
			"iam:GetUser " + user("admin") + " allowed [own/user-managed] missing=[ec2:Region]",
		}},
	} {
		c.in.PolicySourceArn = alice
		if got := simulate(&c.in); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}

	// A role, with its own boundary, and AWS's policies.
	_, err = admin.CreateRole(ctx, &iam.CreateRoleInput{
		RoleName: aws.String("deploy"), Path: aws.String("/ci/"), AssumeRolePolicyDocument: aws.String(trusting("AWS", account)), PermissionsBoundary: aws.String(managed + "IAMReadOnlyAccess"),
		Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("blue")}},
	})
	w.wants("a role", err, "")
	_, err = admin.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: aws.String("deploy"), PolicyArn: aws.String(managed + "AdministratorAccess")})
	w.wants("attaching", err, "")
	got := simulate(&iam.SimulatePrincipalPolicyInput{PolicySourceArn: aws.String("arn:aws:iam::" + account + ":role/ci/deploy"), ActionNames: []string{"iam:GetUser", "iam:CreateUser"}})
	if want := []string{
		"iam:GetUser * allowed [AdministratorAccess/aws-managed IAMReadOnlyAccess/aws-managed] missing=[] boundary=true",
		"iam:CreateUser * implicitDeny [] missing=[] boundary=false",
	}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}

	// A simulation agrees with the real decision.
	for _, action := range []string{"iam:ListUsers", "iam:GetUser"} {
		said := simulate(&iam.SimulatePrincipalPolicyInput{PolicySourceArn: aws.String(user("admin")), ActionNames: []string{action}})[0]
		if !strings.Contains(said, " allowed ") {
			t.Error(said)
		}
	}

	refused := func(what string, in *iam.SimulatePrincipalPolicyInput, want string) {
		t.Helper()
		if in.PolicySourceArn == nil {
			in.PolicySourceArn = alice
		}
		if in.ActionNames == nil {
			in.ActionNames = []string{"iam:GetUser"}
		}
		_, err := admin.SimulatePrincipalPolicy(ctx, in)
		w.wants(what, err, want)
	}
	refused("nobody", &iam.SimulatePrincipalPolicyInput{PolicySourceArn: aws.String(user("nobody"))}, "NoSuchEntity")
	refused("no ARN", &iam.SimulatePrincipalPolicyInput{PolicySourceArn: aws.String("this is no ARN of anything")}, "InvalidInput")
	refused("a wildcard", &iam.SimulatePrincipalPolicyInput{ActionNames: []string{"iam:*"}}, "InvalidInput")
	refused("no action", &iam.SimulatePrincipalPolicyInput{ActionNames: []string{"GetUser"}}, "InvalidInput")
	refused("no resource", &iam.SimulatePrincipalPolicyInput{ResourceArns: []string{"bucket"}}, "InvalidInput")
	refused("a policy that is none", &iam.SimulatePrincipalPolicyInput{PolicyInputList: []string{"{}"}}, "InvalidInput")
	refused("two boundaries", &iam.SimulatePrincipalPolicyInput{PermissionsBoundaryPolicyInputList: []string{listing, listing}}, "InvalidInput")
	refused("a type that is none", &iam.SimulatePrincipalPolicyInput{ContextEntries: []types.ContextEntry{{ContextKeyName: aws.String("a:b"), ContextKeyType: "text", ContextKeyValues: []string{"a"}}}}, "InvalidInput")
	refused("a key that is none", &iam.SimulatePrincipalPolicyInput{ContextEntries: []types.ContextEntry{{ContextKeyName: aws.String("ab123"), ContextKeyType: "string", ContextKeyValues: []string{"a"}}}}, "InvalidInput")
	refused("a caller that is a role", &iam.SimulatePrincipalPolicyInput{CallerArn: aws.String("arn:aws:iam::" + account + ":role/ci/deploy")}, "InvalidInput")
	refused("a resource policy", &iam.SimulatePrincipalPolicyInput{ResourcePolicy: aws.String("{}")}, "ValidationError")
}

func TestSimulateCustomPolicy(t *testing.T) {
	w := newWorld(t, nil)
	c, ctx := w.iam(w.admin()), t.Context()
	in := &iam.SimulateCustomPolicyInput{
		PolicyInputList: []string{
			`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:*","Resource":"arn:aws:s3:::team/${aws:PrincipalTag/team, 'all'}/*","Condition":{"Bool":{"aws:SecureTransport":"true"}}}}`,
			`{"Version":"2012-10-17","Statement":{"Effect":"Deny","Action":"s3:Delete*","Resource":"*"}}`,
		},
		ResourceArns: []string{"arn:aws:s3:::team/all/x"}, MaxItems: aws.Int32(2),
		ContextEntries: []types.ContextEntry{{ContextKeyName: aws.String("aws:SecureTransport"), ContextKeyType: types.ContextKeyTypeEnumBoolean, ContextKeyValues: []string{"true"}}},
	}
	for i := range 5 {
		in.ActionNames = append(in.ActionNames, []string{"s3:GetObject", "s3:DeleteObject", "s3:PutObject", "ec2:RunInstances", "s3:ListBucket"}[i])
	}
	var got []string
	pages := iam.NewSimulateCustomPolicyPaginator(c, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.EvaluationResults) > 2 {
			t.Errorf("%d on a page", len(page.EvaluationResults))
		}
		for _, e := range page.EvaluationResults {
			got = append(got, string(e.EvalDecision))
		}
	}
	if want := []string{"allowed", "explicitDeny", "allowed", "implicitDeny", "allowed"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	keys := must[*iam.GetContextKeysForCustomPolicyOutput](w)(c.GetContextKeysForCustomPolicy(ctx, &iam.GetContextKeysForCustomPolicyInput{PolicyInputList: in.PolicyInputList}))
	if want := []string{"aws:PrincipalTag/team", "aws:SecureTransport"}; !slices.Equal(keys.ContextKeyNames, want) {
		t.Errorf("%q", keys.ContextKeyNames)
	}
	w.user("alice")
	w.inline("alice", `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*","Condition":{"StringLike":{"s3:prefix":"${aws:username}/*"}}}}`)
	mine := must[*iam.GetContextKeysForPrincipalPolicyOutput](w)(c.GetContextKeysForPrincipalPolicy(ctx, &iam.GetContextKeysForPrincipalPolicyInput{PolicySourceArn: aws.String("arn:aws:iam::" + account + ":user/alice")}))
	if want := []string{"aws:username", "s3:prefix"}; !slices.Equal(mine.ContextKeyNames, want) {
		t.Errorf("%q", mine.ContextKeyNames)
	}
	// It takes the permission to simulate, and gives no other.
	bob := w.user("bob")
	_, err := w.iam(bob).SimulateCustomPolicy(ctx, in)
	w.wants("who may not", err, "AccessDenied")
}
