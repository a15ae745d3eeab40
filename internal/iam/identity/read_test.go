// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identity"
)

func arnError(s string) string {
	if _, err := arn.Parse(s); err != nil {
		return err.Error()
	}
	return ""
}

func TestParseAWSAuth(t *testing.T) {
	got, problems := identity.ParseAWSAuth(map[string]string{
		"mapRoles":    "- roleARN: arn:aws:iam::111122223333:role/n\n  username: system:node:{{EC2PrivateDNSName}}\n  Groups: [system:bootstrappers, system:nodes]\n- sso: {permissionSetName: A, accountID: '111122223333', partition: aws-cn}\n  username: x\n",
		"mapUsers":    "# people\n- {userarn: arn:aws:iam::111122223333:user/anna, username: anna, groups: [system:masters], userid: AIDAEXAMPLEEXAMPLE123}\n",
		"mapAccounts": "- \"000000000001\"\n- 111122223333\n",
	})
	if len(problems) > 0 {
		t.Error(told(problems))
	}
	want := []identity.Mapping{
		{Source: identity.SourceAWSAuth, Entry: "mapRoles[0]", Kind: identity.KindRole, ARN: "arn:aws:iam::111122223333:role/n", Username: "system:node:{{EC2PrivateDNSName}}", Groups: []string{"system:bootstrappers", "system:nodes"}},
		{Source: identity.SourceAWSAuth, Entry: "mapRoles[1]", Kind: identity.KindSSO, SSO: identity.SSO{PermissionSet: "A", Account: account, Partition: "aws-cn"}, Username: "x"},
		{Source: identity.SourceAWSAuth, Entry: "mapUsers[0]", Kind: identity.KindUser, ARN: "arn:aws:iam::111122223333:user/anna", Username: "anna", Groups: []string{"system:masters"}, PrincipalID: "AIDAEXAMPLEEXAMPLE123"},
		{Source: identity.SourceAWSAuth, Entry: "mapAccounts[0]", Kind: identity.KindAccount, Account: "000000000001"},
		{Source: identity.SourceAWSAuth, Entry: "mapAccounts[1]", Kind: identity.KindAccount, Account: account},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// good is an entry that must survive whatever is wrong with its neighbours.
const good = "- rolearn: arn:aws:iam::111122223333:role/good\n  username: good\n"

func TestOneBadEntryOfAWSAuthHidesNoOther(t *testing.T) {
	for _, tc := range []struct {
		name, list, text string
		kept             []string // entries
		want             []string // problems, each begins so
	}{
		{"nothing", "mapRoles", "", nil, nil},
		{"what people write for nothing", "mapRoles", "``", nil, nil},
		{"an empty list", "mapRoles", "[]", nil, nil},
		{"not YAML before", "mapRoles", "- rolearn: arn:aws:iam::111122223333:role/a\n   username: x\n" + good, []string{"mapRoles[1]"}, []string{"aws-auth mapRoles[0]: is not YAML: "}},
		{"not YAML after", "mapRoles", good + "- rolearn: \"arn\n", []string{"mapRoles[0]"}, []string{"aws-auth mapRoles[1]: is not YAML: "}},
		{"a key twice", "mapRoles", good + "- rolearn: a\n  rolearn: b\n" + good, []string{"mapRoles[0]", "mapRoles[2]"}, []string{"aws-auth mapRoles[1]: is not YAML: "}},
		{"a key twice in different case", "mapRoles", "- {rolearn: a, roleARN: b, username: x}\n" + good, []string{"mapRoles[1]"}, []string{"aws-auth mapRoles[0] rolearn: is there twice, in different case"}},
		{"text", "mapRoles", "- arn:aws:iam::111122223333:role/a\n" + good, []string{"mapRoles[1]"}, []string{`aws-auth mapRoles[0]: is the text "arn:aws:iam::111122223333:role/a", and not an object with fields`}},
		{"nothing in an item", "mapRoles", "-\n" + good, []string{"mapRoles[1]"}, []string{"aws-auth mapRoles[0]: is empty, and not an object"}},
		{"groups that are no list", "mapRoles", "- {rolearn: a, username: x, groups: system:masters}\n" + good, []string{"mapRoles[1]"}, []string{`aws-auth mapRoles[0] groups: is the text "system:masters", and not a list; the entry is not used`}},
		{"a group that is no text", "mapRoles", "- {rolearn: a, username: x, groups: [1]}\n" + good, []string{"mapRoles[1]"}, []string{"aws-auth mapRoles[0] groups[0]: is the number 1, and not text"}},
		{"a user name that is no text", "mapRoles", "- {rolearn: a, username: true}\n" + good, []string{"mapRoles[1]"}, []string{"aws-auth mapRoles[0] username: is true, and not text"}},
		{"an unknown field does no harm", "mapRoles", "- {rolearn: a, username: x, group: [y]}\n" + good, []string{"mapRoles[0]", "mapRoles[1]"}, []string{"aws-auth mapRoles[0] group: is not known, and not looked at; the fields are rolearn, username, groups and userid"}},
		{"a user among roles", "mapRoles", "- {userarn: a, username: x}\n" + good, []string{"mapRoles[1]"}, []string{"aws-auth mapRoles[0] userarn: is of a user, in a list of roles"}},
		{"a role among users", "mapUsers", "- {rolearn: a, username: x}\n", nil, []string{"aws-auth mapUsers[0] rolearn: is of a role, in a list of users"}},
		{"a role and a permission set", "mapRoles", "- {rolearn: a, username: x, sso: {permissionSetName: A, accountID: '111122223333'}}\n" + good, []string{"mapRoles[1]"}, []string{"aws-auth mapRoles[0] sso: is there beside rolearn"}},
		{"a permission set that is no object", "mapRoles", "- {username: x, sso: A}\n" + good, []string{"mapRoles[1]"}, []string{`aws-auth mapRoles[0] sso: is the text "A"`}},
		{"an unknown field of one", "mapRoles", "- {username: x, sso: {name: A}}\n" + good, []string{"mapRoles[1]"}, []string{"aws-auth mapRoles[0] sso.name: is not known"}},
		{"no list", "mapRoles", "rolearn: a\n", nil, []string{"aws-auth mapRoles: is an object with fields, and not a list"}},
		{"an account that lost its zero", "mapAccounts", "- 012345678901\n- 012345670123\n- '012345678901'\n", []string{"mapAccounts[2]"}, []string{"aws-auth mapAccounts[0]: is the", "aws-auth mapAccounts[1]: is the number 1402433619"}},
		{"a list in other letters", "maproles", good, nil, []string{"aws-auth maproles: is not read; the entry is not used; write it mapRoles"}},
		{"an unknown list", "mapGroups", good, nil, []string{"aws-auth mapGroups: is not known"}},
		{"two documents", "mapRoles", good + "---\n" + good, []string{"mapRoles[0]"}, []string{"aws-auth mapRoles: has several documents, of which the first is read only"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mappings, problems := identity.ParseAWSAuth(map[string]string{tc.list: tc.text})
			var kept []string
			for _, m := range mappings {
				kept = append(kept, m.Entry)
			}
			if diff := cmp.Diff(tc.kept, kept); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			got := told(problems)
			if len(got) != len(tc.want) {
				t.Fatalf("problems: %q, want %q", got, tc.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], tc.want[i]) {
					t.Errorf("got  %s\nwant %s", got[i], tc.want[i])
				}
			}
		})
	}
}

func TestParseFile(t *testing.T) {
	role := identity.Mapping{Source: identity.SourceFile, Entry: "mapRoles[0]", Kind: identity.KindRole, ARN: "arn:aws:iam::111122223333:role/a", Username: "x"}
	for _, tc := range []struct {
		name, text string
		want       []identity.Mapping
		problems   []string
	}{
		{"nothing", "", nil, nil},
		{"YAML", "mapRoles:\n- rolearn: arn:aws:iam::111122223333:role/a\n  username: x\n", []identity.Mapping{role}, nil},
		{"JSON of a DynamicFile", `{"LastUpdatedDateTime": "1", "Version": "1", "mapRoles": [{"rolearn": "arn:aws:iam::111122223333:role/a", "username": "x"}]}`, []identity.Mapping{role}, nil},
		{"a configuration of aws-iam-authenticator", "clusterID: a\nserver:\n  port: 1\n  mapRoles:\n  - roleARN: arn:aws:iam::111122223333:role/a\n    username: x\n", []identity.Mapping{role}, nil},
		{"lists in other letters", "maproles: [{rolearn: 'arn:aws:iam::111122223333:role/a', username: x}]\n", []identity.Mapping{role}, nil},
		{"a list twice", "maproles: [{rolearn: b, username: x}]\nmapRoles: [{rolearn: 'arn:aws:iam::111122223333:role/a', username: x}]\n", []identity.Mapping{role}, []string{
			"file maproles: is there twice, in different case; the entry is not used; write one list mapRoles",
		}},
		{"one bad entry", "mapRoles: [1, {rolearn: 'arn:aws:iam::111122223333:role/a', username: x}]\n", func() []identity.Mapping { r := role; r.Entry = "mapRoles[1]"; return []identity.Mapping{r} }(), []string{
			"file mapRoles[0]: is the number 1, and not an object with fields; the entry is not used; write rolearn, username and groups",
		}},
		{"an unknown list", "mapGroups: []\n", nil, []string{"file mapGroups: is not known; the entry is not used; the lists are mapRoles, mapUsers, mapAccounts"}},
		{"no object", "[]", nil, []string{"file: is not an object with fields; the entry is not used; begin it with mapRoles:, mapUsers: or mapAccounts:"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, problems := identity.ParseFile([]byte(tc.text))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.problems, told(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
