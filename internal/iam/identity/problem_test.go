// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/iam/identity"
)

func told(problems []identity.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}

// long is the name of a role in eksctl's example of an aws-auth.
const (
	long      = "eksctl-my-cluster-nodegroup-standard-wo-NodeInstanceRole-1WP3NUE3O6UCF"
	asIAMSays = "give the ARN as aws iam get-role says; eksctl and CloudFormation cut the names that they make"
)

// unproven is told of an entry that is used, and lets nobody in but instances.
const unproven = "names nodes after their sessions, and each principal that may assume the role chooses the name: only instances' own sessions are let in, " +
	"hybrid nodes and those of AWS's Fargate are refused; if a service names the sessions of this role, and not the principal that assumes it, " +
	"trust them in the authenticator's configuration (mapping.trustedSessionNames); otherwise let such nodes join with bootstrap tokens"

func TestWhatIsWrongWithAMapping(t *testing.T) {
	m := awsAuth
	const unused = "; the entry is not used; "
	for _, tc := range []struct {
		name string
		o    identity.Options
		m    identity.Mapping
		want []string
	}{
		{"no ARN", identity.Options{}, m("", "x"), []string{"aws-auth mapRoles[0] rolearn: is missing" + unused + "give the ARN of the role"}},
		{"no user name", identity.Options{}, m(role("a"), ""), []string{"aws-auth mapRoles[0] username: is missing" + unused +
			"give a user name: system:node:{{EC2PrivateDNSName}} for nodes, any other for people, such as team:{{SessionName}}"}},
		{"an instance profile", identity.Options{}, m("arn:aws:iam::111122223333:instance-profile/p/nodes", "x"), []string{
			"aws-auth mapRoles[0] rolearn: is the ARN of an instance profile: arn:aws:iam::111122223333:instance-profile/p/nodes" + unused +
				"give that of the role in it, as aws iam get-instance-profile --instance-profile-name nodes says",
		}},
		{"a session", identity.Options{}, m("arn:aws:sts::111122223333:assumed-role/dev/anna", "x"), []string{
			"aws-auth mapRoles[0] rolearn: is the ARN of a session: arn:aws:sts::111122223333:assumed-role/dev/anna" + unused + "give that of its role, arn:aws:iam::111122223333:role/dev",
		}},
		{"a user among roles", identity.Options{}, m("arn:aws:iam::111122223333:user/anna", "x"), []string{
			"aws-auth mapRoles[0] rolearn: is the ARN of a user: arn:aws:iam::111122223333:user/anna" + unused + "move the entry to mapUsers, with userarn",
		}},
		{"a name that no role can have", identity.Options{}, m(role(long), "x"), []string{
			"aws-auth mapRoles[0] rolearn: has a name of 70 characters, and IAM's have at most 64, so nobody is meant: arn:aws:iam::111122223333:role/" + long + unused + asIAMSays,
		}},
		{"a session of one", identity.Options{}, m("arn:aws:sts::111122223333:assumed-role/"+long+"/anna", "x"), []string{
			"aws-auth mapRoles[0] rolearn: has a name of 70 characters, and IAM's have at most 64, so nobody is meant: arn:aws:sts::111122223333:assumed-role/" + long + "/anna" + unused + asIAMSays,
		}},
		{"a pattern that no role can fit", identity.Options{RolePatterns: true}, m(role(long+"*"), "x"), []string{
			`aws-auth mapRoles[0] rolearn: is longer without * than any name, which has at most 64 characters: "arn:aws:iam::111122223333:role/` + long + `*"` + unused + "shorten it",
		}},
		{"a group of IAM", identity.Options{}, m("arn:aws:iam::111122223333:group/g", "x"), []string{
			"aws-auth mapRoles[0] rolearn: is neither a role nor a user: arn:aws:iam::111122223333:group/g" + unused + "give the ARN of the role, as aws iam get-role says",
		}},
		{"nodes named after sessions", identity.Options{}, m(role("a"), "system:node:{{SessionName}}", "system:nodes"), []string{"aws-auth mapRoles[0] username: " + unproven}},
		{"a literal node", identity.Options{}, m(role("a"), "system:node:ip-10-0-0-1", "system:nodes"), []string{
			`aws-auth mapRoles[0] username: is the name of a node that the session need not be: "system:node:ip-10-0-0-1"` + unused +
				"write system:node:{{EC2PrivateDNSName}}, or system:node:{{SessionName}} for instances whose nodes are named by their ids",
			`aws-auth mapRoles[0] groups[0]: is system:nodes, but the user name is not a node's: "system:node:ip-10-0-0-1"` + unused + "write the user name system:node:{{EC2PrivateDNSName}}, or remove the group",
		}},
		{"a node by its access key", identity.Options{}, m(role("a"), "system:node:{{AccessKeyID}}"), []string{
			`aws-auth mapRoles[0] username: is the name of a node that the session need not be: "system:node:{{AccessKeyID}}"` + unused +
				"write system:node:{{EC2PrivateDNSName}}, or system:node:{{SessionName}} for instances whose nodes are named by their ids",
		}},
		{"a system name of a session", identity.Options{}, m(role("a"), "system:{{SessionName}}"), []string{
			`aws-auth mapRoles[0] username: is of Kubernetes itself, with something to fill in: "system:{{SessionName}}"` + unused + "give a name that does not begin with system:",
		}},
		{"a reserved name", identity.Options{}, m(role("a"), "eks:x"), []string{`aws-auth mapRoles[0] username: begins with eks:, which is reserved: "eks:x"` + unused + "give another name; nodes have an entry of their own type"}},
		{"a name that this cluster reserves", identity.Options{Reserved: map[identity.Source][]string{identity.SourceAWSAuth: {"corp:"}}}, m(role("a"), "corp:x"), []string{
			`aws-auth mapRoles[0] username: begins with corp:, which is reserved: "corp:x"` + unused + "give another name; nodes have an entry of their own type",
		}},
		{"and one that it does not any more", identity.Options{Reserved: map[identity.Source][]string{identity.SourceAWSAuth: {"corp:"}}}, m(role("a"), "eks:x"), nil},
		{"a person among the nodes", identity.Options{}, m(role("a"), "x", "system:nodes"), []string{
			`aws-auth mapRoles[0] groups[0]: is system:nodes, but the user name is not a node's: "x"` + unused + "write the user name system:node:{{EC2PrivateDNSName}}, or remove the group",
		}},
		{"a node that is not among them", identity.Options{}, m(role("a"), "system:node:{{EC2PrivateDNSName}}", "system:bootstrappers"), []string{
			"aws-auth mapRoles[0] groups: has no system:nodes, so the node may do nothing; add the group system:nodes",
		}},
		{"an unknown variable", identity.Options{}, m(role("a"), "x:{{ SessionName }}"), []string{
			`aws-auth mapRoles[0] username: has a variable in it that there is not: "x:{{ SessionName }}"` + unused +
				"the variables are {{EC2PrivateDNSName}}, {{AccountID}}, {{SessionName}}, {{SessionNameRaw}} and {{AccessKeyID}}, written without blanks",
		}},
		{"a single brace", identity.Options{}, m(role("a"), "x:{SessionName}"), []string{
			`aws-auth mapRoles[0] username: has a brace in it that belongs to no variable: "x:{SessionName}"` + unused +
				"the variables are {{EC2PrivateDNSName}}, {{AccountID}}, {{SessionName}}, {{SessionNameRaw}} and {{AccessKeyID}}, written without blanks",
		}},
		{"blanks", identity.Options{}, m(role("a"), " x"), []string{`aws-auth mapRoles[0] username: has blanks at its ends: " x"` + unused + "remove them"}},
		{"control characters", identity.Options{}, m(role("a"), "x\ny"), []string{`aws-auth mapRoles[0] username: has characters in it that no name has: "x\ny"` + unused + "write a name in plain text"}},
		{"an empty group", identity.Options{}, m(role("a"), "x", ""), []string{"aws-auth mapRoles[0] groups[0]: is empty, and left out; remove it, or give a name"}},
		{"a group of policies", identity.Options{}, m(role("a"), "x", "muster:access-entry:e"), []string{
			`aws-auth mapRoles[0] groups[0]: is a group of access policies: "muster:access-entry:e"` + unused + "give an access entry the access policy instead",
		}},
		{"a system group of a session", identity.Options{}, m(role("a"), "x", "system:{{SessionName}}"), []string{
			`aws-auth mapRoles[0] groups[0]: is of Kubernetes itself, with something to fill in: "system:{{SessionName}}"` + unused + "give a group that does not begin with system:",
		}},
		{"a pattern where there are none", identity.Options{}, m(role("team-*"), "x"), []string{
			`aws-auth mapRoles[0] rolearn: has a * in it, and role patterns are not switched on: "arn:aws:iam::111122223333:role/team-*"` + unused + "switch role patterns on, or name the role by its ARN",
		}},
		{"a pattern of accounts", identity.Options{RolePatterns: true}, m("arn:aws:iam::*:role/team", "x"), []string{
			`aws-auth mapRoles[0] rolearn: is not a pattern of roles: "arn:aws:iam::*:role/team"` + unused + "* may stand in the name of a role only: arn:aws:iam::111122223333:role/team-*",
		}},
		{"a pattern of everybody", identity.Options{RolePatterns: true}, m(role("*"), "x"), []string{
			`aws-auth mapRoles[0] rolearn: is too wide a pattern: "arn:aws:iam::111122223333:role/*"` + unused + "begin the name with at least 3 characters, and write at most four *",
		}},
		{"an account", identity.Options{}, identity.Mapping{Source: identity.SourceAWSAuth, Entry: "mapAccounts[0]", Kind: identity.KindAccount, Account: "1"}, []string{
			`aws-auth mapAccounts[0]: is not an account: "1"` + unused + "an account is 12 digits, in quotes so that YAML keeps zeros at its start",
		}},
		{"a permission set where there are none", identity.Options{}, identity.Mapping{Source: identity.SourceAWSAuth, Entry: "mapRoles[0]", Kind: identity.KindSSO, SSO: identity.SSO{PermissionSet: "A", Account: account}, Username: "x"}, []string{
			"aws-auth mapRoles[0] sso: maps the roles of a permission set, which is not switched on" + unused + "switch role patterns on, or name the role by its ARN",
		}},
		{"an id that is none", identity.Options{}, identity.Mapping{Source: identity.SourceAWSAuth, Entry: "mapRoles[0]", Kind: identity.KindRole, ARN: role("a"), Username: "x", PrincipalID: "AROAEXAMPLEEXAMPLE123:s"}, []string{
			`aws-auth mapRoles[0] userid: is not an ID of a principal: "AROAEXAMPLEEXAMPLE123:s"` + unused + "it is AROA… of a role or AIDA… of a user, as aws iam get-role says, without a session",
		}},
		{"no source", identity.Options{}, identity.Mapping{Source: "elsewhere", Entry: "a", Kind: identity.KindRole, ARN: role("a"), Username: "x"}, []string{"elsewhere a: is of no source of mappings" + unused + "say where it is from"}},
		{"an object of a session is its role's", identity.Options{}, identity.Mapping{Source: identity.SourceIdentityMapping, Entry: "o", ARN: "arn:aws:sts::111122223333:assumed-role/dev/anna", Username: "x"}, nil},
		{"an object of nothing", identity.Options{}, identity.Mapping{Source: identity.SourceIdentityMapping, Entry: "o", ARN: "arn:aws:iam::111122223333:instance-profile/p", Username: ""}, []string{
			"IAMIdentityMapping o spec.arn: is the ARN of an instance profile: arn:aws:iam::111122223333:instance-profile/p" + unused + "give that of the role in it, as aws iam get-instance-profile --instance-profile-name p says",
			"IAMIdentityMapping o spec.username: is missing" + unused + "give a user name: system:node:{{EC2PrivateDNSName}} for nodes, any other for people, such as team:{{SessionName}}",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, problems := identity.NewTable(tc.o, nil, []identity.Mapping{tc.m})
			if diff := cmp.Diff(tc.want, told(problems)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsWrongWithAnAccessEntry(t *testing.T) {
	const unused = "; the entry is not used; "
	for _, tc := range []struct {
		name string
		e    identity.AccessEntry
		want []string
	}{
		{"nothing", identity.AccessEntry{PrincipalARN: role("a")}, nil},
		{"a service-linked role", identity.AccessEntry{PrincipalARN: role("aws-service-role/eks.amazonaws.com/X")}, []string{
			"AccessEntry e spec.principalARN: is a service-linked role: arn:aws:iam::111122223333:role/aws-service-role/eks.amazonaws.com/X" + unused + "access entries cannot be made for these",
		}},
		{"a name that no role can have", identity.AccessEntry{PrincipalARN: role(long), Type: identity.TypeEC2Linux}, []string{
			"AccessEntry e spec.principalARN: has a name of 70 characters, and IAM's have at most 64, so nobody is meant: arn:aws:iam::111122223333:role/" + long + unused + asIAMSays,
		}},
		{"a pattern", identity.AccessEntry{PrincipalARN: role("team-*")}, []string{`AccessEntry e spec.principalARN: has a * in it: "arn:aws:iam::111122223333:role/team-*"` + unused + "name one principal"}},
		{"a type that is none", identity.AccessEntry{PrincipalARN: role("a"), Type: "EC2"}, []string{
			"AccessEntry e spec.type: is not a type of access entries" + unused + "it is STANDARD, EC2_LINUX, EC2_WINDOWS, FARGATE_LINUX or HYBRID_LINUX",
		}},
		{"hybrid nodes", identity.AccessEntry{PrincipalARN: role("a"), Type: identity.TypeHybridLinux}, []string{"AccessEntry e spec.type: " + unproven}},
		{"nodes of Fargate", identity.AccessEntry{PrincipalARN: role("a"), Type: identity.TypeFargateLinux}, []string{"AccessEntry e spec.type: " + unproven}},
		{"a user as nodes", identity.AccessEntry{PrincipalARN: "arn:aws:iam::111122223333:user/a", Type: identity.TypeEC2Linux}, []string{
			"AccessEntry e spec.principalARN: is a user: arn:aws:iam::111122223333:user/a" + unused + "an entry of nodes is for the role of their instance profile",
		}},
		{"nodes of another account", identity.AccessEntry{PrincipalARN: "arn:aws:iam::444455556666:role/a", Type: identity.TypeEC2Linux}, []string{
			"AccessEntry e spec.principalARN: is of account 444455556666: arn:aws:iam::444455556666:role/a" + unused + "an entry of nodes is for a role of the cluster's own account 111122223333",
		}},
		{"nodes with groups", identity.AccessEntry{PrincipalARN: role("a"), Type: identity.TypeEC2Linux, Groups: []string{"system:masters"}}, []string{
			"AccessEntry e spec.type: is EC2_LINUX, so user name, groups and access policies are not looked at; remove them",
		}},
		{"a reserved user name", identity.AccessEntry{PrincipalARN: role("a"), Username: "system:node:{{EC2PrivateDNSName}}"}, []string{
			`AccessEntry e spec.username: begins with system:, which is reserved: "system:node:{{EC2PrivateDNSName}}"` + unused + "give another name; nodes have an entry of their own type",
		}},
		{"a reserved group", identity.AccessEntry{PrincipalARN: role("a"), Groups: []string{"a", "system:masters"}}, []string{
			`AccessEntry e spec.kubernetesGroups[1]: begins with system:, as groups of access entries cannot: "system:masters"` + unused +
				"use an access policy, such as AmazonEKSClusterAdminPolicy for system:masters, or an entry of type EC2_LINUX for nodes",
		}},
		{"a session before a colon", identity.AccessEntry{PrincipalARN: role("a"), Username: "{{SessionNameRaw}}:a"}, []string{
			`AccessEntry e spec.username: has the name of the session, which callers choose, before any colon: "{{SessionNameRaw}}:a"` + unused + "put a prefix with a colon before it, as in team:{{SessionName}}",
		}},
		{"no ARN", identity.AccessEntry{PrincipalARN: "dev"}, []string{
			`AccessEntry e spec.principalARN: is not an ARN: "dev": ` + arnError("dev") + unused + "give the ARN of the role, as aws iam get-role says",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.e.Name = "e"
			_, problems := identity.NewTable(identity.Options{Account: account}, []identity.AccessEntry{tc.e}, nil)
			if diff := cmp.Diff(tc.want, told(problems)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheSecondOfTwoForOnePrincipalIsTold(t *testing.T) {
	first, second := awsAuth(role("a/dev"), "first"), awsAuth(role("DEV"), "second")
	second.Entry = "mapRoles[1]"
	made, problems := identity.NewTable(identity.Options{}, nil, []identity.Mapping{first, second})
	if diff := cmp.Diff([]string(nil), told(problems)); diff != "" { // one names a path, so the other is for more
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	if got := brief(made.Map(session(t, "dev", "anna"))); got != "first [] by mapRoles[0]" {
		t.Error(got)
	}
	first.ARN = role("dev")
	_, problems = identity.NewTable(identity.Options{}, nil, []identity.Mapping{first, second})
	want := []string{"aws-auth mapRoles[1] rolearn: names the same principal as mapRoles[0], which comes first; the entry is not used; remove one of the two; here the first counts, aws-iam-authenticator takes the last"}
	if diff := cmp.Diff(want, told(problems)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Not where the first is for another principal of the name, nor where it is of another source, nor where it is not
	// used.
	first.PrincipalID = "AROAEXAMPLEEXAMPLE000"
	third := second
	third.Source = identity.SourceFile
	bad := awsAuth(role("dev"), "system:node:x")
	if _, problems = identity.NewTable(identity.Options{}, nil, []identity.Mapping{first, second, third}); len(problems) > 0 {
		t.Error(told(problems))
	}
	if _, problems = identity.NewTable(identity.Options{}, nil, []identity.Mapping{bad, second}); len(problems) != 1 {
		t.Error(told(problems))
	}
}

// Where access entries have the ids of their principals, one without lets nobody in by name.
func TestAnEntryWithoutAnIDIsNotUsedWhereTheyHaveThem(t *testing.T) {
	named := identity.AccessEntry{Name: "n", PrincipalARN: role("dev"), Username: "x"}
	for ids, mapped := range map[bool]bool{false: true, true: false} {
		table, problems := identity.NewTable(identity.Options{PrincipalIDs: ids}, []identity.AccessEntry{named}, nil)
		o := table.Map(session(t, "dev", "anna"))
		if o.Mapped != mapped || !mapped && (o.Rule != identity.RuleEntry || len(problems) != 1 || !problems[0].Unused || problems[0].Field != "spec.principalID") {
			t.Errorf("ids %v: %+v, %+v", ids, o, problems)
		}
	}
	named.PrincipalID = session(t, "dev", "anna").UserID
	if table, problems := identity.NewTable(identity.Options{PrincipalIDs: true}, []identity.AccessEntry{named}, nil); len(problems) != 0 || !table.Map(session(t, "dev", "anna")).Mapped {
		t.Errorf("with its id: %+v", problems)
	}
}
