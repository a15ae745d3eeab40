// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

const forEC2 = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`

// Markers that no page ended with are refused by every list, as those of other lists and of changed requests are.
func TestMarkersCannotBeMadeUp(t *testing.T) {
	w := newWorld(t, nil)
	c, ctx := w.iam(w.admin()), t.Context()
	for i := range 3 {
		name, path := fmt.Sprintf("u%d", i), "/team/"
		must[*iam.CreateUserOutput](w)(c.CreateUser(ctx, &iam.CreateUserInput{UserName: &name, Path: &path}))
	}
	one := aws.Int32(1)
	users := must[*iam.ListUsersOutput](w)(c.ListUsers(ctx, &iam.ListUsersInput{MaxItems: one})).Marker
	policies := must[*iam.ListPoliciesOutput](w)(c.ListPolicies(ctx, &iam.ListPoliciesInput{MaxItems: one})).Marker
	if *users == base64.RawURLEncoding.EncodeToString([]byte("admin")) {
		t.Errorf("the marker %s can be made up", *users)
	}
	session := must[*sts.GetSessionTokenOutput](w)(w.sts(w.admin()).GetSessionToken(ctx, &sts.GetSessionTokenInput{})).Credentials
	flipped := []byte(*users)
	flipped[10] ^= 1
	for name, marker := range map[string]string{
		"the name of a user": "u1", "the position of a page": base64.RawURLEncoding.EncodeToString([]byte("u1")), "in base64 with padding": base64.StdEncoding.EncodeToString([]byte("u1")),
		"nothing": "", "of another list": *policies, "changed": string(flipped), "cut off": (*users)[:len(*users)-2], "longer": *users + "AA",
		"with a line break": *users + "\n", "with a space": " " + *users, "a number": "1", "very long": strings.Repeat("A", 9000), "twice": *users + *users,
		"a session token": *session.SessionToken, "not of letters": "\x01\u00ff", "no base64": "!!!!",
	} {
		_, err := c.ListUsers(ctx, &iam.ListUsersInput{Marker: &marker})
		w.wants(name, err, "ValidationError")
		if err != nil && !strings.HasSuffix(err.Error(), "Invalid Marker.") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := c.ListUsers(ctx, &iam.ListUsersInput{Marker: users, PathPrefix: aws.String("/team/")})
	w.wants("with another path", err, "ValidationError")
	rest := must[*iam.ListUsersOutput](w)(c.ListUsers(ctx, &iam.ListUsersInput{Marker: users, MaxItems: aws.Int32(50)}))
	if len(rest.Users) != 3 || rest.IsTruncated {
		t.Errorf("the rest is %d, %t", len(rest.Users), rest.IsTruncated)
	}
}

// Lists that are always short read their markers and sizes, too.
func TestShortListsReadMarkers(t *testing.T) {
	w := newWorld(t, nil)
	c, ctx := w.iam(w.admin()), t.Context()
	bad, zero, admin := aws.String("YWRtaW4"), aws.Int32(0), aws.String("admin")
	role := must[*iam.CreateRoleOutput](w)(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: aws.String("r"), AssumeRolePolicyDocument: aws.String(forEC2)})).Role.RoleName
	for name, list := range map[string]func(marker *string, most *int32) error{
		"ListAccountAliases": func(m *string, n *int32) error {
			_, err := c.ListAccountAliases(ctx, &iam.ListAccountAliasesInput{Marker: m, MaxItems: n})
			return err
		},
		"ListGroupsForUser": func(m *string, n *int32) error {
			_, err := c.ListGroupsForUser(ctx, &iam.ListGroupsForUserInput{UserName: admin, Marker: m, MaxItems: n})
			return err
		},
		"ListMFADevices": func(m *string, n *int32) error {
			_, err := c.ListMFADevices(ctx, &iam.ListMFADevicesInput{Marker: m, MaxItems: n})
			return err
		},
		"ListVirtualMFADevices": func(m *string, n *int32) error {
			_, err := c.ListVirtualMFADevices(ctx, &iam.ListVirtualMFADevicesInput{Marker: m, MaxItems: n})
			return err
		},
		"ListRoleTags": func(m *string, n *int32) error {
			_, err := c.ListRoleTags(ctx, &iam.ListRoleTagsInput{RoleName: role, Marker: m, MaxItems: n})
			return err
		},
		"ListRolePolicies": func(m *string, n *int32) error {
			_, err := c.ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: role, Marker: m, MaxItems: n})
			return err
		},
		"ListAttachedRolePolicies": func(m *string, n *int32) error {
			_, err := c.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: role, Marker: m, MaxItems: n})
			return err
		},
		"ListInstanceProfilesForRole": func(m *string, n *int32) error {
			_, err := c.ListInstanceProfilesForRole(ctx, &iam.ListInstanceProfilesForRoleInput{RoleName: role, Marker: m, MaxItems: n})
			return err
		},
		"ListPolicyVersions": func(m *string, n *int32) error {
			_, err := c.ListPolicyVersions(ctx, &iam.ListPolicyVersionsInput{PolicyArn: aws.String(managed + "ReadOnlyAccess"), Marker: m, MaxItems: n})
			return err
		},
		"ListEntitiesForPolicy": func(m *string, n *int32) error {
			_, err := c.ListEntitiesForPolicy(ctx, &iam.ListEntitiesForPolicyInput{PolicyArn: aws.String(managed + "ReadOnlyAccess"), Marker: m, MaxItems: n})
			return err
		},
	} {
		w.wants(name+" with a marker", list(bad, nil), "ValidationError")
		w.wants(name+" of none", list(nil, zero), "ValidationError")
		w.wants(name, list(nil, nil), "")
	}
}
