// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"testing"

	"muster.dev/muster/internal/iam/identity"
)

func TestTheFirstSourceThatTheModeAsksDecides(t *testing.T) {
	accounts := identity.Mapping{Source: identity.SourceAWSAuth, Entry: "accounts", Kind: identity.KindAccount, Account: account}
	entry := identity.AccessEntry{Name: "e", PrincipalARN: role("dev"), Username: "entry"}
	object, auth, file := from(identity.SourceIdentityMapping, "o", "object"), from(identity.SourceAWSAuth, "mapRoles[0]", "auth"), from(identity.SourceFile, "mapRoles[0]", "file")
	for _, tc := range []struct {
		name     string
		mode     identity.Mode
		entries  []identity.AccessEntry
		mappings []identity.Mapping
		want     string
	}{
		{"access entries come first", "", []identity.AccessEntry{entry}, []identity.Mapping{file, auth, object}, "entry [] by e"},
		{"then objects", "", nil, []identity.Mapping{file, auth, object}, "object [] by o"},
		{"then aws-auth", "", nil, []identity.Mapping{file, auth}, "auth [] by mapRoles[0]"},
		{"then the file", "", nil, []identity.Mapping{file}, "file [] by mapRoles[0]"},
		{"accounts come after the others of their source", "", nil, []identity.Mapping{accounts, auth}, "auth [] by mapRoles[0]"},
		{"and before the sources after it", "", nil, []identity.Mapping{file, accounts}, "arn:aws:iam::111122223333:role/dev [] by accounts"},
		{
			"an entry that refuses is not gone round", "",
			[]identity.AccessEntry{{Name: "n", PrincipalARN: role("dev"), Type: identity.TypeEC2Linux}},
			[]identity.Mapping{auth},
			`no: instance: the session "anna" is not proven to be an instance's, and "system:node:{{EC2PrivateDNSName}}" is for instances`,
		},
		{"an entry for another principal of the name is", "", []identity.AccessEntry{{Name: "n", PrincipalARN: role("dev"), PrincipalID: "AROAEXAMPLEEXAMPLE000"}}, []identity.Mapping{auth}, "auth [] by mapRoles[0]"},
		{"CONFIG_MAP does not ask access entries", identity.ModeConfigMap, []identity.AccessEntry{entry}, []identity.Mapping{auth}, "auth [] by mapRoles[0]"},
		{
			"and says so", identity.ModeConfigMap,
			[]identity.AccessEntry{entry},
			nil,
			"no: mode: AccessEntry e names arn:aws:iam::111122223333:role/dev, but the authentication mode CONFIG_MAP does not ask this source",
		},
		{"API asks access entries only", identity.ModeAPI, []identity.AccessEntry{entry}, []identity.Mapping{auth}, "entry [] by e"},
		{
			"and says so", identity.ModeAPI, nil,
			[]identity.Mapping{auth},
			"no: mode: aws-auth mapRoles[0] names arn:aws:iam::111122223333:role/dev, but the authentication mode API does not ask this source",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			made := table(t, identity.Options{Mode: tc.mode}, tc.entries, tc.mappings...)
			if got := brief(made.Map(session(t, "dev", "anna"))); got != tc.want {
				t.Errorf("\ngot  %s\nwant %s", got, tc.want)
			}
		})
	}
	if _, problems := identity.NewTable(identity.Options{Mode: "NONE"}, []identity.AccessEntry{entry}, nil); len(problems) != 1 {
		t.Errorf("a mode that is none: %v", problems)
	}
	var none identity.Table
	if o := none.Map(session(t, "dev", "anna")); o.Mapped || none.Len() != 0 {
		t.Errorf("the zero table maps %+v", o)
	}
}

func TestAPatternComesInItsOrder(t *testing.T) {
	first := awsAuth(role("team-*"), "pattern")
	second := awsAuth(role("team-a"), "exact")
	second.Entry = "mapRoles[1]"
	who := session(t, "team-a", "anna")
	if got := brief(table(t, identity.Options{RolePatterns: true}, nil, first, second).Map(who)); got != "pattern [] by mapRoles[0]" {
		t.Error(got)
	}
	if got := brief(table(t, identity.Options{RolePatterns: true}, nil, second, first).Map(who)); got != "exact [] by mapRoles[1]" {
		t.Error(got)
	}
}
