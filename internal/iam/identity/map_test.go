// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/platform/decision"
)

// brief is what a test says of an outcome: "NAME [groups] by ENTRY", or "no: RULE: reason".
func brief(o identity.Outcome) string {
	if !o.Mapped {
		return fmt.Sprintf("no: %s: %s", o.Rule, o.Reason)
	}
	return fmt.Sprintf("%s %v by %s", o.User.Name, o.User.Groups, o.Entry)
}

func TestAccessEntries(t *testing.T) {
	entry := func(e identity.AccessEntry) []identity.AccessEntry { e.Name = "e"; return []identity.AccessEntry{e} }
	for _, tc := range []struct {
		name    string
		entries []identity.AccessEntry
		who     identity.Principal
		want    string
	}{
		{
			"a role's user name says its session", entry(identity.AccessEntry{PrincipalARN: role("dev")}), session(t, "dev", "anna"),
			"arn:aws:sts::111122223333:assumed-role/dev/anna [] by e",
		},
		{
			"an @ in the session's name becomes a dash", entry(identity.AccessEntry{PrincipalARN: role("dev")}), session(t, "dev", "anna@x.org"),
			"arn:aws:sts::111122223333:assumed-role/dev/anna-x.org [] by e",
		},
		{
			"a user's user name is its ARN", entry(identity.AccessEntry{PrincipalARN: "arn:aws:iam::111122223333:user/anna"}), user(t, "anna"),
			"arn:aws:iam::111122223333:user/anna [] by e",
		},
		{
			"a role with a path matches, and the user name has no path", entry(identity.AccessEntry{PrincipalARN: role("a/b/dev")}), session(t, "dev", "anna"),
			"arn:aws:sts::111122223333:assumed-role/dev/anna [] by e",
		},
		{"the case of a role's name does not matter", entry(identity.AccessEntry{PrincipalARN: role("DEV"), Username: "x"}), session(t, "dev", "anna"), "x [] by e"},
		{
			"user name and groups as given", entry(identity.AccessEntry{PrincipalARN: role("dev"), Username: "team:{{SessionName}}", Groups: []string{"a", "b"}}), session(t, "dev", "anna"),
			"team:anna [a b] by e",
		},
		{
			"access policies add their group", entry(identity.AccessEntry{PrincipalARN: role("dev"), Username: "x", Groups: []string{"a"}, Policies: []string{"p"}}), session(t, "dev", "anna"),
			"x [a muster:access-entry:e] by e",
		},
		{"the principal's id fits", entry(identity.AccessEntry{PrincipalARN: role("dev"), PrincipalID: "AROAEXAMPLEEXAMPLE123", Username: "x"}), session(t, "dev", "anna"), "x [] by e"},
		{
			"a role made again is another", entry(identity.AccessEntry{PrincipalARN: role("dev"), PrincipalID: "AROAEXAMPLEEXAMPLE000", Username: "x"}), session(t, "dev", "anna"),
			"no: principal-id: AccessEntry e names arn:aws:iam::111122223333:role/dev, but it is for the principal AROAEXAMPLEEXAMPLE000, and this is AROAEXAMPLEEXAMPLE123: " +
				"another one of that name, made after the first was deleted",
		},
		{
			"an unknown id fits none that is recorded", entry(identity.AccessEntry{PrincipalARN: role("dev"), PrincipalID: "AROAEXAMPLEEXAMPLE000", Username: "x"}), session(t, "dev", "anna", withID("")),
			"no: principal-id: AccessEntry e names arn:aws:iam::111122223333:role/dev, but it is for the principal AROAEXAMPLEEXAMPLE000, and this is unknown: " +
				"another one of that name, made after the first was deleted",
		},
		{
			"EC2_LINUX", entry(identity.AccessEntry{PrincipalARN: role("n"), Type: identity.TypeEC2Linux}), session(t, "n", node, proven(node, dnsName)),
			"system:node:ip-10-0-0-1.eu-west-1.compute.internal [system:nodes] by e",
		},
		{
			"EC2_WINDOWS", entry(identity.AccessEntry{PrincipalARN: role("n"), Type: identity.TypeEC2Windows}), session(t, "n", node, proven(node, dnsName)),
			"system:node:ip-10-0-0-1.eu-west-1.compute.internal [system:nodes eks:kube-proxy-windows] by e",
		},
		{
			"FARGATE_LINUX", entry(identity.AccessEntry{PrincipalARN: role("n"), Type: identity.TypeFargateLinux}), session(t, "n", "fargate-1.local", proven("x", "fargate-1.local")),
			"system:node:fargate-1.local [system:nodes system:node-proxier] by e",
		},
		{
			"HYBRID_LINUX", entry(identity.AccessEntry{PrincipalARN: role("n"), Type: identity.TypeHybridLinux}), session(t, "n", "mi-0123456789abcdef0", proven("mi-0123456789abcdef0", "")),
			"system:node:mi-0123456789abcdef0 [system:nodes] by e",
		},
		{
			"a node that is not proven", entry(identity.AccessEntry{PrincipalARN: role("n"), Type: identity.TypeEC2Linux}), session(t, "n", node),
			`no: instance: the session "i-0123456789abcdef0" is not proven to be an instance's, and "system:node:{{EC2PrivateDNSName}}" is for instances`,
		},
		{
			"a hybrid node that is not proven", entry(identity.AccessEntry{PrincipalARN: role("n"), Type: identity.TypeHybridLinux}), session(t, "n", "mi-0123456789abcdef0"),
			`no: instance: the session "mi-0123456789abcdef0" is not proven to be an instance's, and "system:node:{{SessionName}}" is for instances`,
		},
		{
			"a node's session with another name", entry(identity.AccessEntry{PrincipalARN: role("n"), Type: identity.TypeEC2Linux}), session(t, "n", "i-0123456789abcdef1", proven(node, dnsName)),
			`no: instance: the session is named "i-0123456789abcdef1", and not after the instance i-0123456789abcdef0`,
		},
		{
			"a hybrid node's session with another's name", entry(identity.AccessEntry{PrincipalARN: role("n"), Type: identity.TypeHybridLinux}), session(t, "n", "other", proven("mi-0123456789abcdef0", "this")),
			`no: instance: the session is named "other", and not after the instance mi-0123456789abcdef0`,
		},
		{
			"a node's session named as its node", entry(identity.AccessEntry{PrincipalARN: role("n"), Type: identity.TypeEC2Linux}), session(t, "n", dnsName, proven(node, dnsName)),
			`no: instance: the session is named "ip-10-0-0-1.eu-west-1.compute.internal", and not after the instance i-0123456789abcdef0`,
		},
		{
			"an instance without a name", entry(identity.AccessEntry{PrincipalARN: role("n"), Type: identity.TypeEC2Linux}), session(t, "n", node, proven(node, "")),
			`no: instance: the instance i-0123456789abcdef0 has no private DNS name`,
		},
		{
			"an instance with two names", entry(identity.AccessEntry{PrincipalARN: role("n"), Type: identity.TypeEC2Linux}), session(t, "n", node, proven(node, "ip-1.a b.c")),
			`no: instance: the private DNS name "ip-1.a b.c" of the instance i-0123456789abcdef0 cannot be a node's name`,
		},
		{
			"no id of an instance", entry(identity.AccessEntry{PrincipalARN: role("n"), Type: identity.TypeEC2Linux}), session(t, "n", "i-1", proven("i-1", dnsName)),
			`no: instance: "i-1" is not the id of an instance`,
		},
		{
			"a hybrid session that is no node's name", entry(identity.AccessEntry{PrincipalARN: role("n"), Type: identity.TypeHybridLinux}), session(t, "n", "A=b", proven("A=b", "")),
			`no: instance: the name of the session, "A=b", cannot be a node's name`,
		},
		{
			"another account", entry(identity.AccessEntry{PrincipalARN: role("dev")}), principal(t, "arn:aws:sts::444455556666:assumed-role/dev/anna"),
			"no: no-entry: no entry names arn:aws:iam::444455556666:role/dev",
		},
		{
			"another partition", entry(identity.AccessEntry{PrincipalARN: role("dev")}), principal(t, "arn:aws-cn:sts::111122223333:assumed-role/dev/anna"),
			"no: no-entry: no entry names arn:aws-cn:iam::111122223333:role/dev",
		},
		{"a user of the name of a role", entry(identity.AccessEntry{PrincipalARN: role("dev")}), user(t, "dev"), "no: no-entry: no entry names arn:aws:iam::111122223333:user/dev"},
		{"root", entry(identity.AccessEntry{PrincipalARN: role("dev")}), principal(t, "arn:aws:iam::111122223333:root"), "no: no-entry: no entry names arn:aws:iam::111122223333:root"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			made := table(t, identity.Options{}, tc.entries)
			if got := brief(made.Map(tc.who)); got != tc.want {
				t.Errorf("\ngot  %s\nwant %s", got, tc.want)
			}
			if got := brief(made.Explain(tc.who)); got != tc.want {
				t.Errorf("explained\ngot  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestMappings(t *testing.T) {
	dnsNode := awsAuth(role("n"), "system:node:{{EC2PrivateDNSName}}", "system:bootstrappers", "system:nodes")
	sessionNode := awsAuth(role("n"), "system:node:{{SessionName}}", "system:nodes")
	rawNode := awsAuth(role("n"), "system:node:{{SessionNameRaw}}", "system:nodes")
	sso := func(s identity.SSO) identity.Mapping {
		return identity.Mapping{Source: identity.SourceAWSAuth, Entry: "mapRoles[0]", Kind: identity.KindSSO, SSO: s, Username: "x"}
	}
	for _, tc := range []struct {
		name string
		m    identity.Mapping
		who  identity.Principal
		want string
	}{
		{"system:masters works", awsAuth(role("dev"), "admin", "system:masters"), session(t, "dev", "anna"), "admin [system:masters] by mapRoles[0]"},
		{"a name of system: works", awsAuth(role("dev"), "system:kube-admin"), session(t, "dev", "anna"), "system:kube-admin [] by mapRoles[0]"},
		{"a role with a path matches", awsAuth(role("a/dev"), "x"), session(t, "dev", "anna"), "x [] by mapRoles[0]"},
		{"a user of a path with that path", anyUser("arn:aws:iam::111122223333:user/a/anna"), user(t, "a/anna"), "x [] by mapUsers[0]"},
		{"a user of a path that STS does not say", anyUser("arn:aws:iam::111122223333:user/a/anna"), user(t, "anna"), "x [] by mapUsers[0]"},
		{"a user of another path", anyUser("arn:aws:iam::111122223333:user/a/anna"), user(t, "b/anna"), "no: no-entry: no entry names arn:aws:iam::111122223333:user/b/anna"},
		{"a node", dnsNode, session(t, "n", node, proven(node, dnsName)), "system:node:" + dnsName + " [system:bootstrappers system:nodes] by mapRoles[0]"},
		{"a node of the old kind of id", dnsNode, session(t, "n", "i-01234567", proven("i-01234567", dnsName)), "system:node:" + dnsName + " [system:bootstrappers system:nodes] by mapRoles[0]"},
		{
			"a node that is not proven", dnsNode, session(t, "n", node),
			`no: instance: the session "i-0123456789abcdef0" is not proven to be an instance's, and "system:node:{{EC2PrivateDNSName}}" is for instances`,
		},
		{"a node named as its session", sessionNode, session(t, "n", node, proven(node, dnsName)), "system:node:" + node + " [system:nodes] by mapRoles[0]"},
		{
			"a person who names a session like a node", sessionNode, session(t, "n", dnsName),
			`no: instance: the session "ip-10-0-0-1.eu-west-1.compute.internal" is not proven to be an instance's, and "system:node:{{SessionName}}" is for instances`,
		},
		{"a node named as its raw session", rawNode, session(t, "n", node, proven(node, dnsName)), "system:node:" + node + " [system:nodes] by mapRoles[0]"},
		{
			"a person who names a raw session like a node", rawNode, session(t, "n", dnsName),
			`no: instance: the session "ip-10-0-0-1.eu-west-1.compute.internal" is not proven to be an instance's, and "system:node:{{SessionNameRaw}}" is for instances`,
		},
		{"a session whose @ would become another node's dash", sessionNode, session(t, "n", "a@b", proven(node, "a-b")), `no: instance: the session is named "a@b", and not after the instance i-0123456789abcdef0`},
		{"a node that has no name", dnsNode, session(t, "n", node, proven(node, "")), "no: instance: the instance i-0123456789abcdef0 has no private DNS name"},
		{"account and raw session", awsAuth(role("dev"), "{{AccountID}}:{{SessionNameRaw}}", "s-{{SessionName}}"), session(t, "dev", "a@b"), "111122223333:a@b [s-a-b] by mapRoles[0]"},
		{"an access key", awsAuth(role("dev"), "key:{{AccessKeyID}}"), session(t, "dev", "anna"), "key:ASIAEXAMPLEEXAMPLE12 [] by mapRoles[0]"},
		{
			"an access key that is none", awsAuth(role("dev"), "key:{{AccessKeyID}}"), session(t, "dev", "anna", func(p *identity.Principal) { p.AccessKeyID = "a:b" }),
			`no: variable: there is no access key to fill in for "key:{{AccessKeyID}}"`,
		},
		{
			"a user has no session",
			identity.Mapping{Source: identity.SourceAWSAuth, Entry: "mapUsers[0]", Kind: identity.KindUser, ARN: "arn:aws:iam::111122223333:user/anna", Username: "x:{{SessionName}}"},
			user(t, "anna"),
			`no: variable: the principal has no session whose name could be filled in for "x:{{SessionName}}"`,
		},
		{"a session's name that none can have", userEntry("x-{{SessionNameRaw}}"), named(user(t, "anna"), "a:b"), `no: session-name: the name of the session, "a:b", cannot be part of another`},
		{"a session's name of one letter", userEntry("x-{{SessionName}}"), named(user(t, "anna"), "a"), `no: session-name: the name of the session, "a", cannot be part of another`},
		{
			"the session makes up a system name", awsAuth(role("dev"), "{{SessionName}}:admin"), session(t, "dev", "system"),
			`no: reserved: filled in, the user name "{{SessionName}}:admin" becomes "system:admin", which begins with system:`,
		},
		{
			"and so does the raw one", awsAuth(role("dev"), "{{SessionNameRaw}}:admin"), session(t, "dev", "system"),
			`no: reserved: filled in, the user name "{{SessionNameRaw}}:admin" becomes "system:admin", which begins with system:`,
		},
		{
			"and completes one", awsAuth(role("dev"), "sys{{SessionName}}:node:x"), session(t, "dev", "tem"),
			`no: reserved: filled in, the user name "sys{{SessionName}}:node:x" becomes "system:node:x", which begins with system:`,
		},
		{
			"the session makes up a reserved name", awsAuth(role("dev"), "{{SessionName}}:x"), session(t, "dev", "eks"),
			`no: reserved: filled in, the user name "{{SessionName}}:x" becomes "eks:x", which begins with eks:`,
		},
		{
			"the session makes up a group", awsAuth(role("dev"), "x", "{{SessionName}}:masters"), session(t, "dev", "system"),
			`no: reserved: filled in, the group "{{SessionName}}:masters" becomes "system:masters", which begins with system:`,
		},
		{
			"the session makes up the group of a policy", awsAuth(role("dev"), "x", "{{SessionName}}:access-entry:e"), session(t, "dev", "muster"),
			`no: reserved: filled in, the group "{{SessionName}}:access-entry:e" becomes "muster:access-entry:e", which begins with muster:access-entry:`,
		},
		{
			"a group of instances", awsAuth(role("dev"), "x", "host:{{EC2PrivateDNSName}}"), session(t, "dev", node),
			`no: instance: the session "i-0123456789abcdef0" is not proven to be an instance's, and "x" is for instances`,
		},
		{
			"an account",
			identity.Mapping{Source: identity.SourceAWSAuth, Entry: "mapAccounts[0]", Kind: identity.KindAccount, Account: account},
			session(t, "dev", "anna"),
			"arn:aws:iam::111122223333:role/dev [] by mapAccounts[0]",
		},
		{
			"an account's federated user",
			identity.Mapping{Source: identity.SourceAWSAuth, Entry: "mapAccounts[0]", Kind: identity.KindAccount, Account: account},
			principal(t, "arn:aws:sts::111122223333:federated-user/bob"),
			"arn:aws:sts::111122223333:federated-user/bob [] by mapAccounts[0]",
		},
		{"an SSO role", sso(identity.SSO{PermissionSet: "Admin", Account: account}), session(t, "AWSReservedSSO_Admin_0123456789abcdef", "anna"), "x [] by mapRoles[0]"},
		{
			"an SSO role of the partition that is written", sso(identity.SSO{PermissionSet: "Admin", Account: account, Partition: "aws-us-gov"}),
			principal(t, "arn:aws-us-gov:sts::111122223333:assumed-role/AWSReservedSSO_Admin_0123456789abcdef/anna"), "x [] by mapRoles[0]",
		},
		{
			"an SSO role of another partition", sso(identity.SSO{PermissionSet: "Admin", Account: account, Partition: "aws-us-gov"}), session(t, "AWSReservedSSO_Admin_0123456789abcdef", "anna"),
			"no: no-entry: no entry names arn:aws:iam::111122223333:role/AWSReservedSSO_Admin_0123456789abcdef",
		},
		{
			"no role of SSO's", sso(identity.SSO{PermissionSet: "Admin", Account: account}), session(t, "AWSReservedSSO_Admin_0123456789abcdex", "anna"),
			"no: no-entry: no entry names arn:aws:iam::111122223333:role/AWSReservedSSO_Admin_0123456789abcdex",
		},
		{
			"another permission set whose name begins so", sso(identity.SSO{PermissionSet: "Admin", Account: account}), session(t, "AWSReservedSSO_Admin_x_0123456789abcdef", "anna"),
			"no: no-entry: no entry names arn:aws:iam::111122223333:role/AWSReservedSSO_Admin_x_0123456789abcdef",
		},
		{"an SSO role by a pattern", awsAuth(role("AWSReservedSSO_Admin_*"), "x"), session(t, "AWSReservedSSO_Admin_0123456789abcdef", "anna"), "x [] by mapRoles[0]"},
		{
			"another permission set by a pattern", awsAuth(role("AWSReservedSSO_Admin_*"), "x"), session(t, "AWSReservedSSO_Admin_x_0123456789abcdef", "anna"),
			"no: no-entry: no entry names arn:aws:iam::111122223333:role/AWSReservedSSO_Admin_x_0123456789abcdef",
		},
		{"a pattern", awsAuth(role("team-*-dev"), "x"), session(t, "team-a-dev", "anna"), "x [] by mapRoles[0]"},
		{"a pattern of a path", awsAuth(role("p/team-*"), "x"), session(t, "team-a", "anna"), "x [] by mapRoles[0]"},
		{"no end of a pattern", awsAuth(role("team-*-dev"), "x"), session(t, "team-a-dev2", "anna"), "no: no-entry: no entry names arn:aws:iam::111122223333:role/team-a-dev2"},
		{"a pattern is of one account", awsAuth(role("team-*"), "x"), principal(t, "arn:aws:sts::444455556666:assumed-role/team-a/anna"), "no: no-entry: no entry names arn:aws:iam::444455556666:role/team-a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			made := table(t, identity.Options{RolePatterns: true}, nil, tc.m)
			if got := brief(made.Map(tc.who)); got != tc.want {
				t.Errorf("\ngot  %s\nwant %s", got, tc.want)
			}
			if got := brief(made.Explain(tc.who)); got != tc.want {
				t.Errorf("explained\ngot  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func anyUser(arn string) identity.Mapping {
	return identity.Mapping{Source: identity.SourceAWSAuth, Entry: "mapUsers[0]", Kind: identity.KindUser, ARN: arn, Username: "x"}
}

func userEntry(username string) identity.Mapping {
	m := anyUser("arn:aws:iam::111122223333:user/anna")
	m.Username = username
	return m
}

// named gives a principal the name of a session that its ARN says nothing of.
func named(p identity.Principal, session string) identity.Principal {
	p.SessionName = session
	return p
}

func from(s identity.Source, entry, username string) identity.Mapping {
	return identity.Mapping{Source: s, Entry: entry, Kind: identity.KindRole, ARN: role("dev"), Username: username}
}

func TestTheAnswerSaysWhoItIs(t *testing.T) {
	entry := []identity.AccessEntry{{Name: "e", PrincipalARN: role("dev"), Username: "x"}}
	got := table(t, identity.Options{}, entry).Map(session(t, "dev", "anna")).User
	want := identity.User{Name: "x", UID: "aws-iam-authenticator:111122223333:AROAEXAMPLEEXAMPLE123", Extra: map[string][]string{
		"arn": {"arn:aws:sts::111122223333:assumed-role/dev/anna"}, "canonicalArn": {"arn:aws:iam::111122223333:role/dev"}, "sessionName": {"anna"},
		"accessKeyId": {"ASIAEXAMPLEEXAMPLE12"}, "principalId": {"AROAEXAMPLEEXAMPLE123"}, "sigs.k8s.io/aws-iam-authenticator/principalId": {"AROAEXAMPLEEXAMPLE123"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got = table(t, identity.Options{Scrubbed: []string{account}}, entry).Map(session(t, "dev", "anna")).User
	if diff := cmp.Diff(identity.User{Name: "x", UID: "aws-iam-authenticator:administrative:x"}, got); diff != "" {
		t.Errorf("scrubbed (-want +got):\n%s", diff)
	}
}

func TestWhatDoesNotFitTogetherIsNobody(t *testing.T) {
	made := table(t, identity.Options{}, []identity.AccessEntry{{Name: "e", PrincipalARN: role("dev"), Username: "x"}, {Name: "u", PrincipalARN: "arn:aws:iam::111122223333:user/anna"}})
	for name, change := range map[string]func(*identity.Principal){
		"no ARN": func(p *identity.Principal) {
			p.ARN = mustParse(t, role("dev"))
			p.ARN.Resource = ""
			p.ARN.Partition = ""
		},
		"another account": func(p *identity.Principal) { p.Account = "444455556666" },
		"another role":    func(p *identity.Principal) { p.CanonicalARN.Resource = "role/other" },
		"another session": func(p *identity.Principal) { p.SessionName = "bert" },
		"a user":          func(p *identity.Principal) { p.CanonicalARN.Resource = "user/anna" },
		"a bare role":     func(p *identity.Principal) { p.ARN = p.CanonicalARN },
		"another user's":  func(p *identity.Principal) { *p = user(t, "bert"); p.CanonicalARN.Resource = "user/anna" },
		"partitions":      func(p *identity.Principal) { p.ARN.Partition = "aws-cn" },
	} {
		p := session(t, "dev", "anna")
		change(&p)
		if o := made.Map(p); o.Mapped || o.Rule != identity.RulePrincipal {
			t.Errorf("%s: %s", name, brief(o))
		}
	}
}

func TestExplainSaysWhyTheOnesBeforeDidNotMatch(t *testing.T) {
	made, _ := identity.NewTable(identity.Options{RolePatterns: true}, []identity.AccessEntry{
		{Name: "a", PrincipalARN: role("other")},
		{Name: "b", PrincipalARN: "arn:aws:iam::444455556666:role/dev"},
		{Name: "c", PrincipalARN: "arn:aws-cn:iam::111122223333:role/dev"},
		{Name: "d", PrincipalARN: "arn:aws:iam::111122223333:user/dev"},
		{Name: "e", PrincipalARN: role("dev"), PrincipalID: "AROAEXAMPLEEXAMPLE000"},
		{Name: "f", PrincipalARN: role("dev"), Username: "system:x"},
	}, []identity.Mapping{
		{Source: identity.SourceAWSAuth, Entry: "mapAccounts[0]", Kind: identity.KindAccount, Account: "444455556666"},
		{Source: identity.SourceAWSAuth, Entry: "mapRoles[0]", Kind: identity.KindSSO, SSO: identity.SSO{PermissionSet: "A", Account: account}, Username: "x"},
		{Source: identity.SourceFile, Entry: "mapRoles[0]", Kind: identity.KindRole, ARN: role("dev"), Username: "file"},
		{Source: identity.SourceFile, Entry: "mapRoles[1]", Kind: identity.KindRole, ARN: role("other"), Username: "file"},
	})
	o := made.Explain(session(t, "dev", "anna"))
	var got []string
	for _, c := range o.Checks {
		got = append(got, strings.Join([]string{string(c.Source), c.Entry, string(c.Outcome), string(c.Rule), c.Detail}, "|"))
	}
	want := []string{
		"AccessEntry|a|NotApplicable|match|it is for arn:aws:iam::111122223333:role/other",
		"AccessEntry|b|NotApplicable|match|it is for arn:aws:iam::444455556666:role/dev, and this is of account 111122223333",
		"AccessEntry|c|NotApplicable|match|it is for arn:aws-cn:iam::111122223333:role/dev, and this is of partition aws",
		"AccessEntry|d|NotApplicable|match|it is for arn:aws:iam::111122223333:user/dev, and this is a role",
		"AccessEntry|e|Refuse|principal-id|it is for the principal AROAEXAMPLEEXAMPLE000, and this is AROAEXAMPLEEXAMPLE123: another one of that name, made after the first was deleted",
		`AccessEntry|f|Refuse|entry|its spec.username begins with system:, which is reserved: "system:x"`,
		"aws-auth|mapRoles[0]|NotApplicable|match|it is for arn:aws:iam::111122223333:role/AWSReservedSSO_A_*, where the * is 16 hexadecimal digits, and this is not named so",
		"aws-auth|mapAccounts[0]|NotApplicable|match|it is for account 444455556666, and this is account 111122223333",
		"file|mapRoles[0]|Pass|match|arn:aws:iam::111122223333:role/dev",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// On the fast way only those that name the principal are told.
	if got := len(made.Map(session(t, "dev", "anna")).Checks); got != 3 {
		t.Errorf("Map tells of %d entries, want 3", got)
	}
	if o.Checks[4].Outcome != decision.Refuse || !o.Mapped {
		t.Errorf("%+v", o)
	}
}
