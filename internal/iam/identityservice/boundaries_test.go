// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

func (w *world) policy(name, document string) *string {
	w.t.Helper()
	made, err := w.iam(w.admin()).CreatePolicy(w.t.Context(), &iam.CreatePolicyInput{PolicyName: &name, PolicyDocument: &document})
	if err != nil {
		w.t.Fatal(err)
	}
	return made.Policy.Arn
}

func (w *world) inline(user, document string) {
	w.t.Helper()
	_, err := w.iam(w.admin()).PutUserPolicy(w.t.Context(), &iam.PutUserPolicyInput{UserName: &user, PolicyName: aws.String("own"), PolicyDocument: &document})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestBoundaryOfAUser(t *testing.T) {
	w := newWorld(t, nil)
	admin, ctx, name := w.iam(w.admin()), t.Context(), aws.String("alice")
	alice := w.user("alice")
	readOnly := aws.String(managed + "IAMReadOnlyAccess")
	_, err := admin.AttachUserPolicy(ctx, &iam.AttachUserPolicyInput{UserName: name, PolicyArn: aws.String(managed + "AdministratorAccess")})
	w.wants("attaching", err, "")
	makes := func(user string) error {
		_, err := w.iam(alice).CreateUser(ctx, &iam.CreateUserInput{UserName: &user})
		return err
	}
	w.wants("unbounded", makes("one"), "")
	if got := must[*iam.GetUserOutput](w)(admin.GetUser(ctx, &iam.GetUserInput{UserName: name})).User; got.PermissionsBoundary != nil {
		t.Errorf("%+v", got.PermissionsBoundary)
	}
	_, err = admin.DeleteUserPermissionsBoundary(ctx, &iam.DeleteUserPermissionsBoundaryInput{UserName: name})
	w.wants("deleting none", err, "NoSuchEntity")
	_, err = admin.PutUserPermissionsBoundary(ctx, &iam.PutUserPermissionsBoundaryInput{UserName: name, PermissionsBoundary: readOnly})
	w.wants("a boundary", err, "")
	got := must[*iam.GetUserOutput](w)(admin.GetUser(ctx, &iam.GetUserInput{UserName: name})).User
	if b := got.PermissionsBoundary; b == nil || *b.PermissionsBoundaryArn != *readOnly || b.PermissionsBoundaryType != types.PermissionsBoundaryAttachmentTypePolicy {
		t.Errorf("%+v", got.PermissionsBoundary)
	}
	err = makes("two")
	w.wants("bounded", err, "AccessDenied")
	if err == nil || !strings.Contains(err.Error(), "because no permissions boundary allows the iam:CreateUser action") {
		t.Error(err)
	}
	_, err = w.iam(alice).ListUsers(ctx, &iam.ListUsersInput{})
	w.wants("within the boundary", err, "")
	// Sessions of the user and changes of it by others stay within it.
	_, err = admin.TagUser(ctx, &iam.TagUserInput{UserName: name, Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}})
	w.wants("tagging", err, "")
	_, err = admin.UpdateUser(ctx, &iam.UpdateUserInput{UserName: name, NewUserName: aws.String("Alice")})
	w.wants("renaming", err, "")
	w.inline("Alice", `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`)
	w.wants("bounded still", makes("three"), "AccessDenied")
	_, err = admin.DeleteUserPermissionsBoundary(ctx, &iam.DeleteUserPermissionsBoundaryInput{UserName: aws.String("Alice")})
	w.wants("deleting", err, "")
	w.wants("unbounded again", makes("four"), "")
}

func TestBoundaryOfARole(t *testing.T) {
	w := newWorld(t, nil)
	admin, ctx := w.iam(w.admin()), t.Context()
	bound := w.policy("bound", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["iam:List*","sts:*"],"Resource":"*"},{"Effect":"Deny","Action":"iam:ListRoles","Resource":"*"}]}`)
	made := must[*iam.CreateRoleOutput](w)(admin.CreateRole(ctx, &iam.CreateRoleInput{
		RoleName: aws.String("deploy"), AssumeRolePolicyDocument: aws.String(trusting("AWS", account)), PermissionsBoundary: bound,
	})).Role
	read := must[*iam.GetRoleOutput](w)(admin.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String("deploy")})).Role
	for _, r := range []*types.Role{made, read} {
		if r.PermissionsBoundary == nil || *r.PermissionsBoundary.PermissionsBoundaryArn != *bound {
			t.Errorf("%+v", r.PermissionsBoundary)
		}
	}
	_, err := admin.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: aws.String("deploy"), PolicyArn: aws.String(managed + "AdministratorAccess")})
	w.wants("attaching", err, "")
	s := session(must[*sts.AssumeRoleOutput](w)(w.sts(w.admin()).AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: roleARN("deploy"), RoleSessionName: aws.String("work")})).Credentials)
	_, err = w.iam(s).ListUsers(ctx, &iam.ListUsersInput{})
	w.wants("within the boundary", err, "")
	_, err = w.iam(s).GetUser(ctx, &iam.GetUserInput{UserName: aws.String("admin")})
	w.wants("outside of the boundary", err, "AccessDenied")
	_, err = w.iam(s).ListRoles(ctx, &iam.ListRolesInput{})
	if w.wants("what the boundary denies", err, "AccessDenied"); err == nil || !strings.Contains(err.Error(), "with an explicit deny in a permissions boundary") {
		t.Error(err)
	}

	got := must[*iam.GetPolicyOutput](w)(admin.GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: bound})).Policy
	if *got.PermissionsBoundaryUsageCount != 1 || *got.AttachmentCount != 0 {
		t.Errorf("used %d times, attached %d", *got.PermissionsBoundaryUsageCount, *got.AttachmentCount)
	}
	for filter, want := range map[types.PolicyUsageType]int{"": 1, types.PolicyUsageTypePermissionsBoundary: 1, types.PolicyUsageTypePermissionsPolicy: 0} {
		holders := must[*iam.ListEntitiesForPolicyOutput](w)(admin.ListEntitiesForPolicy(ctx, &iam.ListEntitiesForPolicyInput{PolicyArn: bound, PolicyUsageFilter: filter}))
		if len(holders.PolicyRoles) != want {
			t.Errorf("%q: %d", filter, len(holders.PolicyRoles))
		}
	}
	listed := must[*iam.ListPoliciesOutput](w)(admin.ListPolicies(ctx, &iam.ListPoliciesInput{PolicyUsageFilter: types.PolicyUsageTypePermissionsBoundary}))
	if len(listed.Policies) != 1 || *listed.Policies[0].Arn != *bound {
		t.Errorf("%+v", listed.Policies)
	}
	_, err = admin.DeletePolicy(ctx, &iam.DeletePolicyInput{PolicyArn: bound})
	w.wants("deleting a boundary that is in use", err, "DeleteConflict")
	_, err = admin.PutRolePermissionsBoundary(ctx, &iam.PutRolePermissionsBoundaryInput{RoleName: aws.String("deploy"), PermissionsBoundary: aws.String(managed + "AdministratorAccess")})
	w.wants("another boundary", err, "")
	_, err = w.iam(s).ListRoles(ctx, &iam.ListRolesInput{})
	w.wants("a session that was there before", err, "")
	_, err = admin.DeleteRolePermissionsBoundary(ctx, &iam.DeleteRolePermissionsBoundaryInput{RoleName: aws.String("deploy")})
	w.wants("deleting", err, "")
	_, err = admin.DeleteRolePermissionsBoundary(ctx, &iam.DeleteRolePermissionsBoundaryInput{RoleName: aws.String("deploy")})
	w.wants("deleting twice", err, "NoSuchEntity")
	_, err = admin.PutRolePermissionsBoundary(ctx, &iam.PutRolePermissionsBoundaryInput{RoleName: aws.String("none"), PermissionsBoundary: bound})
	w.wants("of no role", err, "NoSuchEntity")
}

// A principal that may make roles with one boundary only can make none that may do more, nor take the boundary away.
func TestDelegation(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	bound := w.policy("bound", `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"iam:List*","Resource":"*"}}`)
	lead := w.user("lead")
	w.inline("lead", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["iam:CreateRole","iam:PutRolePolicy","iam:AttachRolePolicy","iam:PutRolePermissionsBoundary"],`+
		`"Resource":"*","Condition":{"StringEquals":{"iam:PermissionsBoundary":"`+*bound+`"}}},{"Effect":"Allow","Action":"iam:DeleteRolePermissionsBoundary","Resource":"*",`+
		`"Condition":{"ArnNotEquals":{"iam:PermissionsBoundary":"`+*bound+`"}}}]}`)
	c := w.iam(lead)
	create := func(name string, boundary *string) error {
		_, err := c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String(trusting("AWS", account)), PermissionsBoundary: boundary})
		return err
	}
	w.wants("a role without a boundary", create("free", nil), "AccessDenied")
	w.wants("a role with another", create("free", aws.String(managed+"AdministratorAccess")), "AccessDenied")
	w.wants("a role with it", create("bounded", bound), "")
	w.role("free", trusting("AWS", account))
	for role, want := range map[string]string{"bounded": "", "free": "AccessDenied"} {
		_, err := c.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: &role, PolicyName: aws.String("p"), PolicyDocument: aws.String(listing)})
		w.wants("an inline policy of "+role, err, want)
		_, err = c.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: &role, PolicyArn: aws.String(managed + "AdministratorAccess")})
		w.wants("attaching to "+role, err, want)
	}
	_, err := c.PutRolePermissionsBoundary(ctx, &iam.PutRolePermissionsBoundaryInput{RoleName: aws.String("bounded"), PermissionsBoundary: aws.String(managed + "AdministratorAccess")})
	w.wants("putting another", err, "AccessDenied")
	_, err = c.DeleteRolePermissionsBoundary(ctx, &iam.DeleteRolePermissionsBoundaryInput{RoleName: aws.String("bounded")})
	w.wants("taking it away", err, "AccessDenied")
}
