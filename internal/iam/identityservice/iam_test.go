// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"muster.dev/muster/internal/iam/identityservice"
)

const (
	managed = "arn:aws:iam::aws:policy/"
	listing = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"iam:List*","Resource":"*"}]}`
)

func TestUsers(t *testing.T) {
	w := newWorld(t, nil)
	c, ctx := w.iam(w.admin()), t.Context()
	create := func(in *iam.CreateUserInput) error { _, err := c.CreateUser(ctx, in); return err }
	alice := aws.String("alice")
	w.wants("a user", create(&iam.CreateUserInput{UserName: alice, Path: aws.String("/team/"), Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}}), "")
	w.wants("twice", create(&iam.CreateUserInput{UserName: alice}), "EntityAlreadyExists")
	w.wants("in capitals", create(&iam.CreateUserInput{UserName: aws.String("ALICE")}), "EntityAlreadyExists")
	w.wants("a space", create(&iam.CreateUserInput{UserName: aws.String("a b")}), "ValidationError")
	w.wants("a path without slashes", create(&iam.CreateUserInput{UserName: aws.String("x"), Path: aws.String("a")}), "ValidationError")
	w.wants("a boundary that is not there", create(&iam.CreateUserInput{UserName: aws.String("x"), PermissionsBoundary: aws.String(managed + "None")}), "NoSuchEntity")
	w.wants("a boundary that is none", create(&iam.CreateUserInput{UserName: aws.String("x"), PermissionsBoundary: aws.String("this is no ARN at all")}), "ValidationError")

	got := must[*iam.GetUserOutput](w)(c.GetUser(ctx, &iam.GetUserInput{UserName: alice})).User
	if *got.Arn != "arn:aws:iam::000000000000:user/team/alice" || len(got.Tags) != 1 || *got.Tags[0].Value != "b" || !strings.HasPrefix(*got.UserId, "AIDA") {
		t.Errorf("%+v", got)
	}
	if own := must[*iam.GetUserOutput](w)(c.GetUser(ctx, &iam.GetUserInput{})).User; *own.UserName != "admin" {
		t.Errorf("without a name: %s", *own.UserName)
	}
	_, err := c.GetUser(ctx, &iam.GetUserInput{UserName: aws.String("Alice")})
	w.wants("a name in other capitals", err, "NoSuchEntity")

	_, err = c.UpdateUser(ctx, &iam.UpdateUserInput{UserName: alice, NewUserName: aws.String("admin")})
	w.wants("a name that is taken", err, "EntityAlreadyExists")
	_, err = c.UpdateUser(ctx, &iam.UpdateUserInput{UserName: alice, NewUserName: aws.String("Alice"), NewPath: aws.String("/")})
	w.wants("a name in other capitals", err, "")
	after := must[*iam.GetUserOutput](w)(c.GetUser(ctx, &iam.GetUserInput{UserName: aws.String("Alice")})).User
	if *after.UserId != *got.UserId || *after.Arn != "arn:aws:iam::000000000000:user/Alice" {
		t.Errorf("renamed: %+v", after)
	}
	_, err = c.TagUser(ctx, &iam.TagUserInput{UserName: aws.String("Alice"), Tags: []types.Tag{{Key: aws.String("A"), Value: aws.String("c")}, {Key: aws.String("d"), Value: aws.String("")}}})
	w.wants("tags", err, "")
	_, err = c.UntagUser(ctx, &iam.UntagUserInput{UserName: aws.String("Alice"), TagKeys: []string{"d"}})
	w.wants("untagging", err, "")
	if tags := must[*iam.ListUserTagsOutput](w)(c.ListUserTags(ctx, &iam.ListUserTagsInput{UserName: aws.String("Alice")})).Tags; len(tags) != 1 || *tags[0].Key != "A" || *tags[0].Value != "c" {
		t.Errorf("tags: %+v", tags)
	}

	drop := func(name string) error {
		_, err := c.DeleteUser(ctx, &iam.DeleteUserInput{UserName: &name})
		return err
	}
	_, err = c.AttachUserPolicy(ctx, &iam.AttachUserPolicyInput{UserName: aws.String("Alice"), PolicyArn: aws.String(managed + "IAMReadOnlyAccess")})
	w.wants("attaching", err, "")
	w.wants("deleting with a policy attached", drop("Alice"), "DeleteConflict")
	_, err = c.DetachUserPolicy(ctx, &iam.DetachUserPolicyInput{UserName: aws.String("Alice"), PolicyArn: aws.String(managed + "IAMReadOnlyAccess")})
	w.wants("detaching", err, "")
	_, err = c.DetachUserPolicy(ctx, &iam.DetachUserPolicyInput{UserName: aws.String("Alice"), PolicyArn: aws.String(managed + "IAMReadOnlyAccess")})
	w.wants("detaching twice", err, "NoSuchEntity")
	_, err = c.PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: aws.String("Alice"), PolicyName: aws.String("p"), PolicyDocument: aws.String(listing)})
	w.wants("an inline policy", err, "")
	w.wants("deleting with an inline policy", drop("Alice"), "DeleteConflict")
	_, err = c.DeleteUserPolicy(ctx, &iam.DeleteUserPolicyInput{UserName: aws.String("Alice"), PolicyName: aws.String("p")})
	w.wants("deleting the inline policy", err, "")
	key := must[*iam.CreateAccessKeyOutput](w)(c.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: aws.String("Alice")})).AccessKey
	w.wants("deleting with a key", drop("Alice"), "DeleteConflict")
	_, err = c.DeleteAccessKey(ctx, &iam.DeleteAccessKeyInput{UserName: aws.String("Alice"), AccessKeyId: key.AccessKeyId})
	w.wants("deleting the key", err, "")
	w.wants("deleting", drop("Alice"), "")
	w.wants("deleting twice", drop("Alice"), "NoSuchEntity")
}

func TestListsComeInPages(t *testing.T) {
	w := newWorld(t, nil)
	c, ctx := w.iam(w.admin()), t.Context()
	want := []string{"admin"}
	for _, name := range []string{"e", "c", "b", "d"} {
		if _, err := c.CreateUser(ctx, &iam.CreateUserInput{UserName: &name}); err != nil {
			t.Fatal(err)
		}
		want = append(want, name)
	}
	slices.Sort(want)
	var got []string
	pages := iam.NewListUsersPaginator(c, &iam.ListUsersInput{MaxItems: aws.Int32(2)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Users) > 2 {
			t.Errorf("%d on a page", len(page.Users))
		}
		for _, u := range page.Users {
			got = append(got, *u.UserName)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	_, err := c.ListUsers(ctx, &iam.ListUsersInput{MaxItems: aws.Int32(0)})
	w.wants("pages of none", err, "ValidationError")
	if want := "Value '0' at 'maxItems' failed to satisfy constraint: Member must have value greater than or equal to 1"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("pages of none: %v, want %s", err, want)
	}
	if none := must[*iam.ListUsersOutput](w)(c.ListUsers(ctx, &iam.ListUsersInput{PathPrefix: aws.String("/a")})); len(none.Users) != 0 {
		t.Errorf("below /a: %+v", none.Users)
	}
}

func TestAccessKeys(t *testing.T) {
	w := newWorld(t, nil)
	alice := w.user("alice")
	c, ctx, name := w.iam(w.admin()), t.Context(), aws.String("alice")
	second := must[*iam.CreateAccessKeyOutput](w)(c.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: name})).AccessKey
	_, err := c.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: name})
	w.wants("a third key", err, "LimitExceeded")
	if keys := must[*iam.ListAccessKeysOutput](w)(c.ListAccessKeys(ctx, &iam.ListAccessKeysInput{UserName: name})).AccessKeyMetadata; len(keys) != 2 {
		t.Errorf("%d keys", len(keys))
	}
	_, err = c.UpdateAccessKey(ctx, &iam.UpdateAccessKeyInput{UserName: name, AccessKeyId: &alice.id, Status: "Sleeping"})
	w.wants("a status that is none", err, "ValidationError")
	_, err = c.UpdateAccessKey(ctx, &iam.UpdateAccessKeyInput{AccessKeyId: &alice.id, Status: types.StatusTypeInactive})
	w.wants("somebody else's key as one's own", err, "NoSuchEntity")
	_, err = c.DeleteAccessKey(ctx, &iam.DeleteAccessKeyInput{UserName: name, AccessKeyId: aws.String("AKIAAAAAAAAAAAAAAAAA")})
	w.wants("a key that is not there", err, "NoSuchEntity")
	used := must[*iam.GetAccessKeyLastUsedOutput](w)(c.GetAccessKeyLastUsed(ctx, &iam.GetAccessKeyLastUsedInput{AccessKeyId: second.AccessKeyId}))
	if *used.UserName != "alice" || *used.AccessKeyLastUsed.ServiceName != "N/A" || used.AccessKeyLastUsed.LastUsedDate != nil {
		t.Errorf("never used: %+v", used.AccessKeyLastUsed)
	}
	used = must[*iam.GetAccessKeyLastUsedOutput](w)(c.GetAccessKeyLastUsed(ctx, &iam.GetAccessKeyLastUsedInput{AccessKeyId: &w.key.ID}))
	if *used.AccessKeyLastUsed.ServiceName != "iam" || *used.AccessKeyLastUsed.Region != "eu-west-1" || used.AccessKeyLastUsed.LastUsedDate == nil || used.AccessKeyLastUsed.LastUsedDate.Nanosecond() != 0 {
		t.Errorf("used: %+v", used.AccessKeyLastUsed)
	}
	_, err = w.iam(alice).CreateAccessKey(ctx, &iam.CreateAccessKeyInput{})
	w.wants("a user without policies", err, "AccessDenied")
}

func TestRolesAndProfiles(t *testing.T) {
	w := newWorld(t, nil)
	c, ctx, app := w.iam(w.admin()), t.Context(), aws.String("app")
	ec2 := aws.String(trusting("Service", "ec2.amazonaws.com"))
	create := func(in *iam.CreateRoleInput) error { _, err := c.CreateRole(ctx, in); return err }
	w.wants("a role", create(&iam.CreateRoleInput{RoleName: app, AssumeRolePolicyDocument: ec2, Description: aws.String("d"), MaxSessionDuration: aws.Int32(7200)}), "")
	w.wants("twice", create(&iam.CreateRoleInput{RoleName: app, AssumeRolePolicyDocument: ec2}), "EntityAlreadyExists")
	w.wants("no trust policy", create(&iam.CreateRoleInput{RoleName: aws.String("x"), AssumeRolePolicyDocument: aws.String("{}")}), "MalformedPolicyDocument")
	w.wants("trust in nobody there is", create(&iam.CreateRoleInput{RoleName: aws.String("x"), AssumeRolePolicyDocument: aws.String(trusting("AWS", "arn:aws:iam::000000000000:user/none"))}), "MalformedPolicyDocument")
	w.wants("a long session", create(&iam.CreateRoleInput{RoleName: aws.String("x"), AssumeRolePolicyDocument: ec2, MaxSessionDuration: aws.Int32(50000)}), "ValidationError")

	got := must[*iam.GetRoleOutput](w)(c.GetRole(ctx, &iam.GetRoleInput{RoleName: app})).Role
	document, err := url.QueryUnescape(*got.AssumeRolePolicyDocument)
	var trust any
	if err != nil || json.Unmarshal([]byte(document), &trust) != nil || !strings.Contains(document, "ec2.amazonaws.com") {
		t.Errorf("trust policy %q, %v", document, err)
	}
	if *got.MaxSessionDuration != 7200 || *got.Description != "d" || !strings.HasPrefix(*got.RoleId, "AROA") {
		t.Errorf("%+v", got)
	}
	_, err = c.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: app, PolicyDocument: aws.String(trusting("AWS", "arn:aws:iam::000000000000:user/admin"))})
	w.wants("another trust policy", err, "")
	got = must[*iam.GetRoleOutput](w)(c.GetRole(ctx, &iam.GetRoleInput{RoleName: app})).Role
	if document, _ := url.QueryUnescape(*got.AssumeRolePolicyDocument); !strings.Contains(document, "user/admin") {
		t.Errorf("trust is shown as %s", document)
	}

	profile := aws.String("p")
	_, err = c.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: profile})
	w.wants("a profile", err, "")
	add := func(role string) error {
		_, err := c.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: profile, RoleName: &role})
		return err
	}
	w.wants("a role that is not there", add("none"), "NoSuchEntity")
	w.wants("a role in it", add("app"), "")
	w.wants("a second role", add("muster-node"), "LimitExceeded")
	if p := must[*iam.GetInstanceProfileOutput](w)(c.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: profile})).InstanceProfile; len(p.Roles) != 1 || *p.Roles[0].RoleName != "app" {
		t.Errorf("%+v", p)
	}
	if l := must[*iam.ListInstanceProfilesForRoleOutput](w)(c.ListInstanceProfilesForRole(ctx, &iam.ListInstanceProfilesForRoleInput{RoleName: app})).InstanceProfiles; len(l) != 1 {
		t.Errorf("%+v", l)
	}
	_, err = c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: app})
	w.wants("deleting a role in a profile", err, "DeleteConflict")
	_, err = c.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: profile})
	w.wants("deleting a profile with a role", err, "DeleteConflict")
	_, err = c.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: profile, RoleName: app})
	w.wants("taking it out", err, "")
	_, err = c.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: profile})
	w.wants("deleting the profile", err, "")
	_, err = c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: app})
	w.wants("deleting the role", err, "")
}

func TestPolicies(t *testing.T) {
	w := newWorld(t, nil)
	c, ctx := w.iam(w.admin()), t.Context()
	made := must[*iam.CreatePolicyOutput](w)(c.CreatePolicy(ctx, &iam.CreatePolicyInput{PolicyName: aws.String("own"), PolicyDocument: aws.String(listing)})).Policy
	_, err := c.CreatePolicy(ctx, &iam.CreatePolicyInput{PolicyName: aws.String("own"), PolicyDocument: aws.String(listing)})
	w.wants("twice", err, "EntityAlreadyExists")
	_, err = c.CreatePolicy(ctx, &iam.CreatePolicyInput{PolicyName: aws.String("bad"), PolicyDocument: aws.String(`{"Statement":[]}`)})
	w.wants("without a statement", err, "MalformedPolicyDocument")
	alice := w.user("alice")
	_, err = w.iam(alice).ListUsers(ctx, &iam.ListUsersInput{})
	w.wants("before it is attached", err, "AccessDenied")
	_, err = c.AttachUserPolicy(ctx, &iam.AttachUserPolicyInput{UserName: aws.String("alice"), PolicyArn: made.Arn})
	w.wants("attaching", err, "")
	_, err = w.iam(alice).ListUsers(ctx, &iam.ListUsersInput{})
	w.wants("once it is attached", err, "")
	_, err = c.DeletePolicy(ctx, &iam.DeletePolicyInput{PolicyArn: made.Arn})
	w.wants("deleting it while attached", err, "DeleteConflict")
	_, err = c.PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: aws.String("alice"), PolicyName: aws.String("deny"), PolicyDocument: aws.String(strings.ReplaceAll(listing, "Allow", "Deny"))})
	w.wants("denying", err, "")
	_, err = w.iam(alice).ListUsers(ctx, &iam.ListUsersInput{})
	w.wants("an explicit deny", err, "AccessDenied")
	if !strings.Contains(err.Error(), "explicit deny") {
		t.Error(err)
	}
	_, err = c.AttachUserPolicy(ctx, &iam.AttachUserPolicyInput{UserName: aws.String("alice"), PolicyArn: aws.String(managed + "Nonsense")})
	w.wants("a policy that AWS has not", err, "NoSuchEntity")
	version := must[*iam.GetPolicyVersionOutput](w)(c.GetPolicyVersion(ctx, &iam.GetPolicyVersionInput{PolicyArn: aws.String(managed + "AdministratorAccess"), VersionId: aws.String("v1")})).PolicyVersion
	if document, _ := url.QueryUnescape(*version.Document); !strings.Contains(document, `"*"`) {
		t.Error(document)
	}
	_, err = c.DeletePolicy(ctx, &iam.DeletePolicyInput{PolicyArn: aws.String(managed + "AdministratorAccess")})
	w.wants("deleting AWS's own", err, "AccessDenied")
	if l := must[*iam.ListPoliciesOutput](w)(c.ListPolicies(ctx, &iam.ListPoliciesInput{Scope: types.PolicyScopeTypeLocal, OnlyAttached: true})).Policies; len(l) != 1 || *l[0].AttachmentCount != 1 {
		t.Errorf("%+v", l)
	}
}

func TestAccount(t *testing.T) {
	w := newWorld(t, nil)
	c, ctx := w.iam(w.admin()), t.Context()
	if m := must[*iam.GetAccountSummaryOutput](w)(c.GetAccountSummary(ctx, &iam.GetAccountSummaryInput{})).SummaryMap; m["Users"] != 1 || m["Roles"] != 1 {
		t.Errorf("%v", m)
	}
	_, err := c.CreateAccountAlias(ctx, &iam.CreateAccountAliasInput{AccountAlias: aws.String("lab")})
	w.wants("an alias", err, "")
	if l := must[*iam.ListAccountAliasesOutput](w)(c.ListAccountAliases(ctx, &iam.ListAccountAliasesInput{})).AccountAliases; !slices.Equal(l, []string{"lab"}) {
		t.Error(l)
	}
	_, err = c.DeleteAccountAlias(ctx, &iam.DeleteAccountAliasInput{AccountAlias: aws.String("lab")})
	w.wants("no alias", err, "")
}

func TestPassingARoleTakesPassRole(t *testing.T) {
	w := newWorld(t, nil)
	alice := w.user("alice")
	ctx := t.Context()
	if _, err := w.iam(w.admin()).PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: aws.String("alice"), PolicyName: aws.String("p"), PolicyDocument: aws.String(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["iam:CreateInstanceProfile","iam:AddRoleToInstanceProfile"],"Resource":"*"}]}`)}); err != nil {
		t.Fatal(err)
	}
	_, err := w.iam(alice).CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("mine")})
	w.wants("a profile", err, "")
	_, err = w.iam(alice).AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String("mine"), RoleName: aws.String("muster-node")})
	w.wants("a role that she may not pass", err, "AccessDenied")
}

func TestTheManagementPlaneIsAway(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	for _, test := range []struct {
		err  error
		want string
	}{
		{identityservice.ErrAway(), "ServiceUnavailable"},
		{identityservice.ErrConflict, "ConcurrentModification"},
		{identityservice.ErrDeleted, "NoSuchEntity"},
		{identityservice.ErrExists, "EntityAlreadyExists"},
		{identityservice.ErrRefused, "InternalFailure"},
		{errors.New("x"), "InternalFailure"},
		{context.DeadlineExceeded, "ServiceUnavailable"},
	} {
		w.store.Fail = func(int, identityservice.Entity) error { return test.err }
		_, err := w.iam(w.admin()).CreateUser(ctx, &iam.CreateUserInput{UserName: aws.String("alice")})
		w.wants(test.err.Error(), err, test.want)
		_, err = w.iam(w.admin()).ListUsers(ctx, &iam.ListUsersInput{})
		w.wants("reading meanwhile", err, "")
	}
}

func TestVersionsOfPolicies(t *testing.T) {
	w := newWorld(t, nil)
	c, ctx := w.iam(w.admin()), t.Context()
	alice := w.user("alice")
	own := must[*iam.CreatePolicyOutput](w)(c.CreatePolicy(ctx, &iam.CreatePolicyInput{PolicyName: aws.String("own"), PolicyDocument: aws.String(listing)})).Policy.Arn
	_, err := c.AttachUserPolicy(ctx, &iam.AttachUserPolicyInput{UserName: aws.String("alice"), PolicyArn: own})
	w.wants("attaching", err, "")
	may := func(what, want string) {
		t.Helper()
		_, err := w.iam(alice).ListUsers(ctx, &iam.ListUsersInput{})
		w.wants(what, err, want)
	}
	next := func(what string, arn *string, document string, inForce bool, want string) (id string) {
		t.Helper()
		out, err := c.CreatePolicyVersion(ctx, &iam.CreatePolicyVersionInput{PolicyArn: arn, PolicyDocument: &document, SetAsDefault: inForce})
		w.wants(what, err, want)
		if err != nil {
			return ""
		}
		if out.PolicyVersion.IsDefaultVersion != inForce || out.PolicyVersion.CreateDate == nil {
			t.Errorf("%s: %+v", what, out.PolicyVersion)
		}
		return *out.PolicyVersion.VersionId
	}
	drop := func(version string) error {
		_, err := c.DeletePolicyVersion(ctx, &iam.DeletePolicyVersionInput{PolicyArn: own, VersionId: &version})
		return err
	}
	nothing := strings.ReplaceAll(listing, "iam:List*", "iam:GetUser")

	if id := next("a version that is not in force", own, nothing, false, ""); id != "v2" {
		t.Errorf("the second version is %s", id)
	}
	may("by the first version", "")
	if id := next("one that is", own, nothing, true, ""); id != "v3" {
		t.Errorf("the third version is %s", id)
	}
	may("by the third", "AccessDenied")
	_, err = c.SetDefaultPolicyVersion(ctx, &iam.SetDefaultPolicyVersionInput{PolicyArn: own, VersionId: aws.String("v1")})
	w.wants("the first again", err, "")
	may("by the first again", "")
	got := must[*iam.GetPolicyOutput](w)(c.GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: own})).Policy
	if *got.DefaultVersionId != "v1" || got.UpdateDate.Before(*got.CreateDate) {
		t.Errorf("%+v", got)
	}
	_, err = c.SetDefaultPolicyVersion(ctx, &iam.SetDefaultPolicyVersionInput{PolicyArn: own, VersionId: aws.String("v9")})
	w.wants("one that there is not", err, "NoSuchEntity")
	for what, version := range map[string]string{"a document without a version": "", "a document of the version before": `"Version":"2008-10-17",`} {
		old := strings.Replace(listing, `"Version":"2012-10-17",`, version, 1)
		next(what, own, old, true, "MalformedPolicyDocument")
		_, err = c.CreatePolicy(ctx, &iam.CreatePolicyInput{PolicyName: aws.String("old"), PolicyDocument: &old})
		w.wants(what, err, "MalformedPolicyDocument")
		_, err = c.PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: aws.String("alice"), PolicyName: aws.String("old"), PolicyDocument: &old})
		w.wants(what+", inline in a user", err, "")
		_, err = c.DeleteUserPolicy(ctx, &iam.DeleteUserPolicyInput{UserName: aws.String("alice"), PolicyName: aws.String("old")})
		w.wants("deleting it", err, "")
		trust := `{` + version + `"Statement":[{"Effect":"Allow","Principal":{"AWS":"000000000000"},"Action":"sts:AssumeRole"}]}`
		_, err = c.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("muster-node"), PolicyDocument: &trust})
		w.wants(what+", of trust", err, "")
	}
	next("a resource of IAM in a region", own, `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"iam:*","Resource":"arn:aws:iam:us-east-1:000000000000:role/a"}]}`, true, "MalformedPolicyDocument")
	next("a document that is none", own, `{"Statement":[]}`, true, "MalformedPolicyDocument")
	next("a version of AWS's own", aws.String(managed+"AdministratorAccess"), listing, true, "AccessDenied")
	next("a version of nothing", aws.String("arn:aws:iam::000000000000:policy/none"), listing, true, "NoSuchEntity")
	next("the fourth", own, nothing, false, "")
	next("the fifth", own, nothing, false, "")
	next("the sixth", own, nothing, false, "LimitExceeded")
	w.wants("deleting the version in force", drop("v1"), "DeleteConflict")
	w.wants("deleting one that there is not", drop("v9"), "NoSuchEntity")
	w.wants("deleting the second", drop("v2"), "")
	if id := next("another", own, nothing, false, ""); id != "v6" {
		t.Errorf("after the second was deleted, the next is %s", id)
	}
	if l := must[*iam.ListPolicyVersionsOutput](w)(c.ListPolicyVersions(ctx, &iam.ListPolicyVersionsInput{PolicyArn: own})).Versions; len(l) != 5 || !l[0].IsDefaultVersion {
		t.Errorf("%+v", l)
	}

	// The holders of a policy must be found before it can be deleted, and its other versions go first.
	_, err = c.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: aws.String("muster-node"), PolicyArn: own})
	w.wants("attaching to a role", err, "")
	held := must[*iam.ListEntitiesForPolicyOutput](w)(c.ListEntitiesForPolicy(ctx, &iam.ListEntitiesForPolicyInput{PolicyArn: own}))
	if len(held.PolicyUsers) != 1 || *held.PolicyUsers[0].UserName != "alice" || !strings.HasPrefix(*held.PolicyUsers[0].UserId, "AIDA") ||
		len(held.PolicyRoles) != 1 || *held.PolicyRoles[0].RoleName != "muster-node" || !strings.HasPrefix(*held.PolicyRoles[0].RoleId, "AROA") || len(held.PolicyGroups) != 0 {
		t.Errorf("%+v", held)
	}
	held = must[*iam.ListEntitiesForPolicyOutput](w)(c.ListEntitiesForPolicy(ctx, &iam.ListEntitiesForPolicyInput{PolicyArn: own, EntityFilter: types.EntityTypeRole}))
	if len(held.PolicyUsers) != 0 || len(held.PolicyRoles) != 1 {
		t.Errorf("roles alone: %+v", held)
	}
	held = must[*iam.ListEntitiesForPolicyOutput](w)(c.ListEntitiesForPolicy(ctx, &iam.ListEntitiesForPolicyInput{PolicyArn: own, MaxItems: aws.Int32(1)}))
	if len(held.PolicyUsers)+len(held.PolicyRoles) != 1 || !held.IsTruncated {
		t.Errorf("a page of one: %+v", held)
	}
	more := must[*iam.ListEntitiesForPolicyOutput](w)(c.ListEntitiesForPolicy(ctx, &iam.ListEntitiesForPolicyInput{PolicyArn: own, MaxItems: aws.Int32(1), Marker: held.Marker}))
	if len(more.PolicyUsers)+len(more.PolicyRoles) != 1 || len(more.PolicyUsers) == len(held.PolicyUsers) || more.IsTruncated {
		t.Errorf("the page after it: %+v", more)
	}
	_, err = c.DetachUserPolicy(ctx, &iam.DetachUserPolicyInput{UserName: aws.String("alice"), PolicyArn: own})
	w.wants("detaching from the user", err, "")
	_, err = c.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: aws.String("muster-node"), PolicyArn: own})
	w.wants("detaching from the role", err, "")
	_, err = c.DeletePolicy(ctx, &iam.DeletePolicyInput{PolicyArn: own})
	w.wants("deleting a policy with several versions", err, "DeleteConflict")
	for _, version := range []string{"v3", "v4", "v5", "v6"} {
		w.wants("deleting "+version, drop(version), "")
	}
	_, err = c.DeletePolicy(ctx, &iam.DeletePolicyInput{PolicyArn: own})
	w.wants("deleting it", err, "")
}
