// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"
)

func sessionTags(pairs ...string) []types.Tag {
	var tags []types.Tag
	for i := 0; i < len(pairs); i += 2 {
		tags = append(tags, types.Tag{Key: &pairs[i], Value: &pairs[i+1]})
	}
	return tags
}

func tagging(who, condition string) string {
	return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"` + who + `"},"Action":["sts:AssumeRole","sts:TagSession"],"Condition":{` + condition + `}}]}`
}

// Each case is an AssumeRole of a role whose trust policy has that condition, by a user.
func TestSessionTags(t *testing.T) {
	w := newWorld(t, nil)
	alice := w.user("alice")
	who := "arn:aws:iam::" + account + ":user/alice"
	w.role("untagged", trusting("AWS", who))
	w.role("tagged", tagging(who, ""))
	w.role("blue", tagging(who, `"StringEquals":{"aws:RequestTag/team":"blue"},"ForAllValues:StringEquals":{"aws:TagKeys":["team","cost"]},"Null":{"sts:TransitiveTagKeys":"true"}`))
	w.role("through", tagging(who, `"ForAllValues:StringEquals":{"sts:TransitiveTagKeys":["team"]}`))
	many := make([]string, 0, 102)
	for i := range 51 {
		many = append(many, fmt.Sprintf("k%d", i), "v")
	}
	for name, c := range map[string]struct {
		role       string
		tags       []types.Tag
		transitive []string
		want       string
	}{
		"a role whose trust does not say sts:TagSession": {"untagged", sessionTags("team", "blue"), nil, "AccessDenied"},
		"the same without tags":                          {"untagged", nil, nil, ""},
		"tags":                                           {"tagged", sessionTags("team", "blue", "Cost Center", "Ä 1"), nil, ""},
		"a value that is empty":                          {"tagged", sessionTags("team", ""), nil, ""},
		"a tag that the trust asks for":                  {"blue", sessionTags("Team", "blue"), nil, "AccessDenied"}, // aws:TagKeys has the case of the request
		"it in that case":                                {"blue", sessionTags("team", "blue", "cost", "1"), nil, ""},
		"another value of it":                            {"blue", sessionTags("team", "red"), nil, "AccessDenied"},
		"it and another":                                 {"blue", sessionTags("team", "blue", "x", "y"), nil, "AccessDenied"},
		"it as a transitive one":                         {"blue", sessionTags("team", "blue"), []string{"team"}, "AccessDenied"},
		"a transitive tag that may be":                   {"through", sessionTags("team", "blue", "x", "y"), []string{"team"}, ""},
		"one that may not be":                            {"through", sessionTags("team", "blue", "x", "y"), []string{"x"}, "AccessDenied"},
		"a transitive key without its tag":               {"tagged", sessionTags("team", "blue"), []string{"other"}, "InvalidParameterValue"},
		"a transitive key alone":                         {"tagged", nil, []string{"other"}, "InvalidParameterValue"},
		"a key twice":                                    {"tagged", sessionTags("team", "blue", "TEAM", "red"), nil, "InvalidParameterValue"},
		"too many":                                       {"tagged", sessionTags(many...), nil, "ValidationError"},
		"a long key":                                     {"tagged", sessionTags(strings.Repeat("k", 129), "v"), nil, "ValidationError"},
		"a long value":                                   {"tagged", sessionTags("k", strings.Repeat("v", 257)), nil, "ValidationError"},
		"a key of AWS":                                   {"tagged", sessionTags("aws:x", "v"), nil, "ValidationError"},
		"a character that no tag has":                    {"tagged", sessionTags("a*", "v"), nil, "ValidationError"},
		"tags that do not fit":                           {"tagged", sessionTags("a", strings.Repeat("v", 256), "b", strings.Repeat("v", 256), "c", strings.Repeat("v", 256), "d", strings.Repeat("v", 256), "e", strings.Repeat("v", 256), "f", strings.Repeat("v", 256)), nil, "PackedPolicyTooLarge"},
	} {
		got, err := w.sts(alice).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: roleARN(c.role), RoleSessionName: aws.String("work"), Tags: c.tags, TransitiveTagKeys: c.transitive})
		w.wants(name, err, c.want)
		if err == nil && (got.PackedPolicySize != nil) != (c.tags != nil) { //nolint:staticcheck // SA1019: older clients read it
			t.Errorf("%s: %v percent", name, got.PackedPolicySize) //nolint:staticcheck // SA1019: as above
		}
		if c.role == "untagged" && err != nil && !strings.Contains(err.Error(), "is not authorized to perform: sts:TagSession on resource: "+*roleARN("untagged")) {
			t.Error(err)
		}
	}
}

// A session is its role with other tags: policies see those, and transitive ones reach the next session.
func TestSessionTagsAreThePrincipals(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	admin := w.iam(w.admin())
	byTag := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["iam:ListUsers"],"Resource":"*","Condition":{"StringEquals":{"aws:PrincipalTag/team":"blue"}}},` +
		`{"Effect":"Allow","Action":"iam:GetUser","Resource":"arn:aws:iam::*:user/${aws:PrincipalTag/cost}"}]}`
	for name, trust := range map[string]string{"first": tagging(account, ""), "second": tagging(account, `"StringEquals":{"aws:PrincipalTag/team":"blue"}`), "third": tagging(account, "")} {
		_, err := admin.CreateRole(ctx, &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: &trust, Tags: []iamtypes.Tag{{Key: aws.String("Team"), Value: aws.String("red")}}})
		w.wants(name, err, "")
		_, err = admin.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: &name, PolicyName: aws.String("p"), PolicyDocument: &byTag})
		w.wants(name, err, "")
		_, err = admin.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: &name, PolicyName: aws.String("q"), PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sts:*","Resource":"*"}}`)})
		w.wants(name, err, "")
	}
	assume := func(s signer, role string, tags []types.Tag, transitive ...string) (signer, error) {
		got, err := w.sts(s).AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: roleARN(role), RoleSessionName: aws.String("work"), Tags: tags, TransitiveTagKeys: transitive})
		if err != nil {
			return signer{}, err
		}
		return session(got.Credentials), nil
	}
	lists := func(s signer) error { _, err := w.iam(s).ListUsers(ctx, &iam.ListUsersInput{}); return err }
	gets := func(s signer) error {
		_, err := w.iam(s).GetUser(ctx, &iam.GetUserInput{UserName: aws.String("admin")})
		return err
	}
	plain, err := assume(w.admin(), "first", nil)
	w.wants("without tags", err, "")
	w.wants("the role's own tag", lists(plain), "AccessDenied")
	one, err := assume(w.admin(), "first", sessionTags("team", "blue", "cost", "admin"), "TEAM")
	w.wants("with tags", err, "")
	w.wants("the session's tag over the role's", lists(one), "")
	w.wants("the session's tag as a variable", gets(one), "")

	_, err = assume(plain, "second", nil)
	w.wants("a chain without the tag", err, "AccessDenied")
	two, err := assume(one, "second", nil)
	w.wants("a chain with the tag", err, "")
	w.wants("the transitive tag", lists(two), "")
	w.wants("one that is not", gets(two), "AccessDenied")
	three, err := assume(two, "third", sessionTags("cost", "admin"))
	w.wants("a longer chain", err, "")
	w.wants("the transitive tag in it", lists(three), "")
	w.wants("its own tag", gets(three), "")
	_, err = assume(two, "third", sessionTags("Team", "red"))
	if w.wants("another value of a transitive tag", err, "InvalidParameterValue"); err == nil || !strings.Contains(err.Error(), "conflicts with a transitive tag key from the calling session") {
		t.Error(err)
	}
	// The next role must let tags in, although none are passed by the caller.
	w.role("plain", trusting("AWS", account))
	_, err = assume(one, "plain", nil)
	if w.wants("a role that lets no tags in", err, "AccessDenied"); err == nil || !strings.Contains(err.Error(), "sts:TagSession") {
		t.Error(err)
	}
	_, err = assume(plain, "plain", nil)
	w.wants("a session without tags", err, "")
}
