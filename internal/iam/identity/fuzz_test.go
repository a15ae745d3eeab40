// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/iam/identity"
)

// sane is what must hold of everything that is read, whatever it was.
func sane(t *testing.T, mappings []identity.Mapping, problems []identity.Problem) {
	t.Helper()
	for _, m := range mappings {
		if m.Entry == "" || m.Source == "" || m.Kind == "" {
			t.Errorf("a mapping from nowhere: %+v", m)
		}
	}
	made, more := identity.NewTable(identity.Options{RolePatterns: true}, nil, mappings)
	for _, p := range append(problems, more...) {
		if p.Saw == "" || p.Fix == "" || len(p.String()) > 8192 {
			t.Errorf("a problem that helps nobody: %+v", p)
		}
	}
	if made.Len() > len(mappings) {
		t.Errorf("%d of %d entries are in use", made.Len(), len(mappings))
	}
	for _, m := range mappings {
		name := m.ARN[strings.LastIndex(m.ARN, "/")+1:]
		for _, s := range []string{"arn:aws:sts::111122223333:assumed-role/good/" + node, "arn:aws:iam::111122223333:root"} {
			o := made.Map(principal(t, s))
			if strings.HasPrefix(o.User.Name, "system:node:") {
				t.Errorf("%s became %s by %s", s, o.User.Name, name)
			}
		}
	}
}

func FuzzParseAWSAuth(f *testing.F) {
	f.Add("mapRoles", good)
	f.Add("mapRoles", good+"- rolearn: \"x\n")
	f.Add("mapRoles", "- {rolearn: arn:aws:iam::111122223333:role/good, username: 'system:node:{{EC2PrivateDNSName}}', groups: [system:nodes]}")
	f.Add("mapRoles", "- sso: {permissionSetName: A, accountID: 111122223333}\n  username: x")
	f.Add("mapUsers", "- userarn: arn:aws:iam::111122223333:user/a\n  username: '{{SessionName}}'")
	f.Add("mapAccounts", "- '111122223333'\n- 012345678901")
	f.Add("maproles", "&a [*a]")
	f.Fuzz(func(t *testing.T, name, text string) {
		mappings, problems := identity.ParseAWSAuth(map[string]string{name: text})
		sane(t, mappings, problems)
		// A good entry after it is never lost, if this is a list of its own lines.
		if name == "mapRoles" && strings.HasPrefix(text, "- ") && !strings.Contains(text, "---") {
			again, _ := identity.ParseAWSAuth(map[string]string{name: text, "mapUsers": "- {userarn: 'arn:aws:iam::111122223333:user/last', username: last}"})
			if len(again) != len(mappings)+1 {
				t.Errorf("with another list there are %d mappings instead of %d", len(again), len(mappings)+1)
			}
		}
	})
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte("mapRoles:\n" + good))
	f.Add([]byte(`{"Version": "1", "mapUsers": [{"userarn": "a", "username": "b", "groups": ["c"]}], "mapAccounts": ["111122223333"]}`))
	f.Add([]byte("server: {mapRoles: [{rolearn: a, username: b}]}"))
	f.Add([]byte("mapRoles: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		mappings, problems := identity.ParseFile(data)
		sane(t, mappings, problems)
	})
}

// FuzzPatterns looks for a pattern that lets in a role whose name does not begin as the pattern does.
func FuzzPatterns(f *testing.F) {
	f.Add("team-*", "team-a")
	f.Add("AWSReservedSSO_A_*", "AWSReservedSSO_A_0123456789abcdef")
	f.Add("a*b*c", "abc")
	f.Add("***", "x")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+=,.@-") != "" || name == "" {
			return
		}
		made, _ := identity.NewTable(identity.Options{RolePatterns: true}, nil, []identity.Mapping{awsAuth("arn:aws:iam::"+account+":role/"+pattern, "x")})
		if o := made.Map(session(t, name, "anna")); o.Mapped {
			start, _, _ := strings.Cut(pattern[strings.LastIndex(pattern, "/")+1:], "*")
			if !strings.HasPrefix(strings.ToLower(name), strings.ToLower(start)) || len(start) < 3 && strings.Contains(pattern, "*") {
				t.Errorf("%q lets %q in", pattern, name)
			}
		}
		other := principal(t, "arn:aws:sts::444455556666:assumed-role/"+name+"/anna")
		if o := made.Map(other); o.Mapped {
			t.Errorf("%q lets %s in", pattern, other.ARN)
		}
	})
}
