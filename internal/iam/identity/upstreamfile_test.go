// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/iam/identity"
)

// Files of aws-iam-authenticator are read as it reads them: sessions for their roles, and ids without ARNs.
func TestFilesOfUpstream(t *testing.T) {
	const file = `
mapRoles:
- rolearn: arn:aws:sts::111122223333:assumed-role/deploy/anna
  username: deployer
  groups: [deployers]
- userid: AROAEXAMPLEEXAMPLE456
  username: by-id
- userid: AROAEXAMPLEEXAMPLE456
  username: too-late
- userid: AIDAEXAMPLEEXAMPLE123
  username: of-another-kind
mapUsers:
- userid: AIDAEXAMPLEEXAMPLE123
  username: alice
- userid: "1234"
  username: none
- userarn: arn:aws:sts::111122223333:assumed-role/deploy/anna
  username: in-the-wrong-list
`
	mappings, problems := identity.ParseFile([]byte(file))
	if len(problems) > 0 {
		t.Fatal(told(problems))
	}
	table, problems := identity.NewTable(identity.Options{}, nil, mappings)
	var all strings.Builder
	for _, p := range told(problems) {
		all.WriteString(p + "\n")
	}
	for _, want := range []string{
		"file mapRoles[0] rolearn: is the ARN of a session, and every session of the role is let in: arn:aws:sts::111122223333:assumed-role/deploy/anna; give that of its role, arn:aws:iam::111122223333:role/deploy\n",
		"file mapRoles[2] rolearn: names the same principal as mapRoles[1], which comes first; the entry is not used;",
		`file mapRoles[3] userid: is not an ID of a role: "AIDAEXAMPLEEXAMPLE123"; the entry is not used; ids of a role begin with AROA`,
		`file mapUsers[1] userid: is not an ID of a principal: "1234"; the entry is not used;`,
		"file mapUsers[2] userarn: is the ARN of a session: ",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("%s is not among\n%s", want, all.String())
		}
	}
	if len(problems) != 5 || table.Len() != 3 {
		t.Errorf("%d entries in use, and the problems\n%s", table.Len(), all.String())
	}
	for name, c := range map[string]struct {
		p    identity.Principal
		want string
	}{
		"the session":              {session(t, "deploy", "anna"), "deployer"},
		"another one of its role":  {session(t, "deploy", "bob"), "deployer"},
		"another role":             {session(t, "other", "anna"), ""},
		"a role by its id":         {session(t, "other", "anna", withID("AROAEXAMPLEEXAMPLE456")), "by-id"},
		"the role that has the id": {session(t, "deploy", "anna", withID("AROAEXAMPLEEXAMPLE456")), "deployer"},
		"a user by his id":         {user(t, "whoever"), "alice"},
		"a user with another":      {userWithID(t, "AIDAEXAMPLEEXAMPLE000"), ""},
		"a user with a role's id":  {userWithID(t, "AROAEXAMPLEEXAMPLE456"), ""},
		"nobody's id":              {userWithID(t, ""), ""},
	} {
		got := table.Map(c.p)
		mapped := ""
		if got.Mapped {
			mapped = got.User.Name
		}
		if mapped != c.want {
			t.Errorf("%s: %q (%s), want %q", name, mapped, got.Reason, c.want)
		}
	}
	// Such entries are for files: in aws-auth, which is EKS's, they are errors as they are there.
	for i := range mappings {
		mappings[i].Source = identity.SourceAWSAuth
	}
	if table, problems := identity.NewTable(identity.Options{}, nil, mappings); table.Len() != 0 || len(problems) < len(mappings) {
		t.Errorf("%d entries of aws-auth in use: %v", table.Len(), told(problems))
	}
}

func userWithID(t *testing.T, id string) identity.Principal {
	t.Helper()
	p := user(t, "whoever")
	p.UserID = id
	return p
}
