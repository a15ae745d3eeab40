// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identity"
)

const (
	account = "111122223333"
	node    = "i-0123456789abcdef0"
	dnsName = "ip-10-0-0-1.eu-west-1.compute.internal"
)

func mustParse(t testing.TB, s string) arn.ARN {
	t.Helper()
	a, err := arn.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// principal is the principal with that ARN from STS.
func principal(t testing.TB, s string, changes ...func(*identity.Principal)) identity.Principal {
	t.Helper()
	a := mustParse(t, s)
	canonical, err := a.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	_, session, _ := a.AssumedRole()
	p := identity.Principal{ARN: a, CanonicalARN: canonical, Account: a.Account, UserID: "AROAEXAMPLEEXAMPLE123", SessionName: session, AccessKeyID: "ASIAEXAMPLEEXAMPLE12"}
	for _, change := range changes {
		change(&p)
	}
	return p
}

// session is one of a role of the account.
func session(t testing.TB, role, name string, changes ...func(*identity.Principal)) identity.Principal {
	t.Helper()
	return principal(t, "arn:aws:sts::"+account+":assumed-role/"+role+"/"+name, changes...)
}

func user(t testing.TB, name string) identity.Principal {
	t.Helper()
	return principal(t, "arn:aws:iam::"+account+":user/"+name, func(p *identity.Principal) { p.UserID, p.AccessKeyID = "AIDAEXAMPLEEXAMPLE123", "AKIAEXAMPLEEXAMPLE12" })
}

func proven(id, name string) func(*identity.Principal) {
	return func(p *identity.Principal) { p.Instance = &identity.Instance{ID: id, PrivateDNSName: name} }
}

func withID(id string) func(*identity.Principal) {
	return func(p *identity.Principal) { p.UserID = id }
}

func role(name string) string { return "arn:aws:iam::" + account + ":role/" + name }

// awsAuth is a mapping of a role in aws-auth.
func awsAuth(arn, username string, groups ...string) identity.Mapping {
	return identity.Mapping{Source: identity.SourceAWSAuth, Entry: "mapRoles[0]", Kind: identity.KindRole, ARN: arn, Username: username, Groups: groups}
}

func table(t testing.TB, o identity.Options, entries []identity.AccessEntry, mappings ...identity.Mapping) identity.Table {
	t.Helper()
	made, problems := identity.NewTable(o, entries, mappings)
	for _, p := range problems {
		if !strings.HasPrefix(p.Saw, "names nodes after their sessions") { // that is told of entries that are right, too
			t.Error("problem:", p)
		}
	}
	return made
}
