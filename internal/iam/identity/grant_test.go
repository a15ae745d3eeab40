// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/iam/identity"
)

// Every entry is listed in the order in which it is asked, with what it gives and why it gives nothing.
func TestGrants(t *testing.T) {
	t.Parallel()
	entries := []identity.AccessEntry{
		{Name: "dev", PrincipalARN: role("dev"), PrincipalID: "AROAEXAMPLEEXAMPLE123", Groups: []string{"team"}, Policies: []string{"arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"}},
		{Name: "nodes", PrincipalARN: role("n"), PrincipalID: "AROAEXAMPLEEXAMPLE124", Type: identity.TypeEC2Linux},
		{Name: "late", PrincipalARN: role("late")},
		{Name: "below", PrincipalARN: role("a/below"), PrincipalID: "AROAEXAMPLEEXAMPLE125", Username: "a"},
	}
	mappings := []identity.Mapping{
		{Source: identity.SourceAWSAuth, Entry: "mapAccounts[0]", Kind: identity.KindAccount, Account: account},
		{Source: identity.SourceAWSAuth, Entry: "mapRoles[0]", Kind: identity.KindRole, ARN: role("DEV"), Username: "dev:{{SessionName}}"},
		{Source: identity.SourceAWSAuth, Entry: "mapRoles[1]", Kind: identity.KindRole, ARN: role("late"), Username: "late"},
		{Source: identity.SourceAWSAuth, Entry: "mapRoles[2]", Kind: identity.KindRole, ARN: "nonsense", Username: "x"},
		{Source: identity.SourceAWSAuth, Entry: "mapRoles[3]", Kind: identity.KindRole, ARN: role("b/below"), Username: "b"},
	}
	for mode, want := range map[identity.Mode][]identity.Grant{
		identity.ModeAPIAndConfigMap: {
			{Source: "AccessEntry", Entry: "dev", Principal: role("dev"), PrincipalID: "AROAEXAMPLEEXAMPLE123", User: "arn:aws:sts::" + account + ":assumed-role/dev/{{SessionName}}", Groups: []string{"team", "muster:access-entry:dev"}, Used: true},
			{Source: "AccessEntry", Entry: "nodes", Principal: role("n"), PrincipalID: "AROAEXAMPLEEXAMPLE124", User: "system:node:{{EC2PrivateDNSName}}", Groups: []string{"system:nodes"}, InstanceOnly: true, Used: true},
			{Source: "AccessEntry", Entry: "late", Principal: role("late"), User: "arn:aws:sts::" + account + ":assumed-role/late/{{SessionName}}"},
			{Source: "AccessEntry", Entry: "below", Principal: role("a/below"), PrincipalID: "AROAEXAMPLEEXAMPLE125", User: "a", Used: true},
			{Source: "aws-auth", Entry: "mapRoles[0]", Principal: role("DEV"), User: "dev:{{SessionName}}", Used: true, After: "AccessEntry dev"},
			{Source: "aws-auth", Entry: "mapRoles[1]", Principal: role("late"), User: "late", Used: true},
			{Source: "aws-auth", Entry: "mapRoles[2]", Principal: "nonsense", User: "x"},
			{Source: "aws-auth", Entry: "mapRoles[3]", Principal: role("b/below"), User: "b", Used: true},
			{Source: "aws-auth", Entry: "mapAccounts[0]", Principal: "every principal of account " + account, Used: true},
		},
		"nonsense": {},
	} {
		table, _ := identity.NewTable(identity.Options{Mode: mode, PrincipalIDs: true}, entries, mappings)
		if diff := cmp.Diff(want, table.Grants()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", mode, diff)
		}
	}
	table, _ := identity.NewTable(identity.Options{Mode: identity.ModeConfigMap}, entries, mappings)
	for _, g := range table.Grants() {
		if entry := g.Source == identity.SourceAccessEntry; g.Unasked != entry || g.After != "" || entry && g.Used {
			t.Errorf("in mode %s: %+v", identity.ModeConfigMap, g)
		}
	}
}
