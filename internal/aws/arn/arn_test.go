// SPDX-License-Identifier: Apache-2.0

package arn_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/arn"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     arn.ARN
		says     string // of the error
	}{
		{name: "a user", in: "arn:aws:iam::123456789012:user/Alice", want: arn.ARN{Partition: "aws", Service: "iam", Account: "123456789012", Resource: "user/Alice"}},
		{name: "a region", in: "arn:aws:eks:eu-west-1:123456789012:cluster/demo", want: arn.ARN{Partition: "aws", Service: "eks", Region: "eu-west-1", Account: "123456789012", Resource: "cluster/demo"}},
		{name: "colons in the resource", in: "arn:aws-cn:logs:cn-north-1:123456789012:log-group:a:*", want: arn.ARN{Partition: "aws-cn", Service: "logs", Region: "cn-north-1", Account: "123456789012", Resource: "log-group:a:*"}},
		{name: "a policy of AWS", in: "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy", want: arn.ARN{Partition: "aws", Service: "eks", Account: "aws", Resource: "cluster-access-policy/AmazonEKSViewPolicy"}},
		{name: "no account", in: "arn:aws-us-gov:s3:::bucket/key", want: arn.ARN{Partition: "aws-us-gov", Service: "s3", Resource: "bucket/key"}},
		{name: "as long as may be", in: "arn:aws:s3:::" + strings.Repeat("x", 2035), want: arn.ARN{Partition: "aws", Service: "s3", Resource: strings.Repeat("x", 2035)}},
		{name: "one byte longer", in: "arn:aws:s3:::" + strings.Repeat("x", 2036), says: "it has 2049 bytes, and 2048 are the most"},
		{name: "nothing", in: "", says: "it must begin with arn:"},
		{name: "words", in: "NOT AN ARN", says: `"NOT AN ARN" is not an ARN: it must begin with arn:`},
		{name: "upper case", in: "ARN:aws:iam::123456789012:root", says: "it must begin with arn: in lower case"},
		{name: "a space in front", in: " arn:aws:iam::123456789012:root", says: "it must begin with arn:"},
		{name: "five fields", in: "arn:aws:iam::123456789012", says: "it must have the form arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE"},
		{name: "the prefix alone", in: "arn:", says: "it must have the form"},
		{name: "no partition", in: "arn::iam::123456789012:root", says: `its partition is ""`},
		{name: "a foreign partition", in: "arn:gcp:iam::123456789012:root", says: `its partition is "gcp"`},
		{name: "a partition that only looks like one", in: "arn:awsx:iam::123456789012:root", says: `its partition is "awsx"`},
		{name: "a partition in upper case", in: "arn:aws-CN:iam::123456789012:root", says: `its partition is "aws-CN"`},
		{name: "a partition too long", in: "arn:aws-" + strings.Repeat("a", 60) + ":iam::123456789012:root", says: "its partition is"},
		{name: "no service", in: "arn:aws:::123456789012:root", says: `its service is ""`},
		{name: "a service in upper case", in: "arn:aws:IAM::123456789012:root", says: `its service is "IAM"`},
		{name: "a region with a dot", in: "arn:aws:eks:eu.west:123456789012:cluster/x", says: `its region is "eu.west"`},
		{name: "eleven digits", in: "arn:aws:iam::12345678901:root", says: `its account is "12345678901"; an account has 12 digits`},
		{name: "thirteen digits", in: "arn:aws:iam::1234567890123:root", says: "its account is"},
		{name: "digits of another script", in: "arn:aws:iam::١٢٣٤٥٦:root", says: "its account is"},
		{name: "a wildcard account", in: "arn:aws:iam::*:root", says: "its account is"},
		{name: "no resource", in: "arn:aws:iam::123456789012:", says: "its resource"},
		{name: "a space in the resource", in: "arn:aws:iam::123456789012:user/A B", says: "its resource"},
		{name: "a line break at the end", in: "arn:aws:iam::123456789012:root\n", says: "its resource"},
		{name: "letters beyond ASCII", in: "arn:aws:iam::123456789012:user/Zoë", says: "its resource"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := arn.Parse(c.in)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("got %v and error %v, want an error that says %q", got, err, c.says)
				}
				if len(err.Error()) > 500 {
					t.Errorf("the error has %d bytes: it repeats what it was sent", len(err.Error()))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("parsed (-want +got):\n%s", diff)
			}
			if got.String() != c.in {
				t.Errorf("String() = %q, want %q", got.String(), c.in)
			}
		})
	}
	if s := (arn.ARN{}).String(); s != "" {
		t.Errorf("the zero ARN is written %q", s)
	}
}

func TestPrincipals(t *testing.T) {
	const me = "123456789012:"
	long := strings.Repeat("n", 64)
	for _, c := range []struct {
		name, in    string
		canonical   string // "" for none
		withoutPath string // "" for unchanged
		role, user  string // PATH NAME
		assumed     string // ROLE SESSION
	}{
		{name: "a role", in: "iam::" + me + "role/Admin", canonical: "iam::" + me + "role/Admin", role: "/ Admin"},
		{name: "a role with a path", in: "iam::" + me + "role/a/b/Admin", canonical: "iam::" + me + "role/a/b/Admin", withoutPath: "iam::" + me + "role/Admin", role: "/a/b/ Admin"},
		{
			name: "a role of IAM Identity Center", in: "iam::" + me + "role/aws-reserved/sso.amazonaws.com/eu-west-1/AWSReservedSSO_Ops_0123456789abcdef",
			canonical:   "iam::" + me + "role/aws-reserved/sso.amazonaws.com/eu-west-1/AWSReservedSSO_Ops_0123456789abcdef",
			withoutPath: "iam::" + me + "role/AWSReservedSSO_Ops_0123456789abcdef",
			role:        "/aws-reserved/sso.amazonaws.com/eu-west-1/ AWSReservedSSO_Ops_0123456789abcdef",
		},
		{name: "a role whose name is the longest", in: "iam::" + me + "role/" + long, canonical: "iam::" + me + "role/" + long, role: "/ " + long},
		{name: "a role whose name is longer", in: "iam::" + me + "role/x" + long},
		{name: "a role with the longest path", in: "iam::" + me + "role/" + strings.Repeat("p", 510) + "/R", canonical: "iam::" + me + "role/" + strings.Repeat("p", 510) + "/R", withoutPath: "iam::" + me + "role/R", role: "/" + strings.Repeat("p", 510) + "/ R"},
		{name: "a role with a longer path", in: "iam::" + me + "role/" + strings.Repeat("p", 511) + "/R"},
		{name: "a role without a name", in: "iam::" + me + "role/"},
		{name: "a path without a name", in: "iam::" + me + "role/a/"},
		{name: "two slashes", in: "iam::" + me + "role//R"},
		{name: "two slashes in the path", in: "iam::" + me + "role/a//b/R", canonical: "iam::" + me + "role/a//b/R", withoutPath: "iam::" + me + "role/R", role: "/a//b/ R"},
		{name: "two slashes in the path of a user", in: "iam::" + me + "user//a/U", canonical: "iam::" + me + "user//a/U", withoutPath: "iam::" + me + "user/U", user: "//a/ U"},
		{name: "a role with a sign that names do not have", in: "iam::" + me + "role/a*"},
		{name: "a role with every sign of names", in: "iam::" + me + "role/_+=,.@-aZ09", canonical: "iam::" + me + "role/_+=,.@-aZ09", role: "/ _+=,.@-aZ09"},
		{name: "a role in a region", in: "iam:eu-west-1:" + me + "role/R"},
		{name: "a role of no account", in: "iam:::role/R"},
		{name: "a role of AWS", in: "iam::aws:role/R"},
		{name: "a role in upper case", in: "iam::" + me + "Role/R"},
		{name: "a role at STS", in: "sts::" + me + "role/R"},
		{name: "a user", in: "iam::" + me + "user/Alice", canonical: "iam::" + me + "user/Alice", user: "/ Alice"},
		{name: "a user with a path", in: "iam::" + me + "user/ops/Alice", canonical: "iam::" + me + "user/ops/Alice", withoutPath: "iam::" + me + "user/Alice", user: "/ops/ Alice"},
		{name: "the root", in: "iam::" + me + "root", canonical: "iam::" + me + "root"},
		{name: "a root that is longer", in: "iam::" + me + "root/x"},
		{name: "a root in a region", in: "iam:us-east-1:" + me + "root"},
		{name: "a session", in: "sts::" + me + "assumed-role/Admin/session", canonical: "iam::" + me + "role/Admin", assumed: "Admin session"},
		{name: "a session of an instance", in: "sts::" + me + "assumed-role/Node/i-0123456789abcdef0", canonical: "iam::" + me + "role/Node", assumed: "Node i-0123456789abcdef0"},
		{name: "a session with a path, as some say it", in: "sts::" + me + "assumed-role/Org/Team/Admin/session", canonical: "iam::" + me + "role/Org/Team/Admin", assumed: "Org/Team/Admin session"},
		{name: "a session without role", in: "sts::" + me + "assumed-role/session"},
		{name: "a session of a role without a name", in: "sts::" + me + "assumed-role//session"},
		{name: "a session of a path without a name", in: "sts::" + me + "assumed-role/a//session"},
		{name: "a session of a role with a bad name", in: "sts::" + me + "assumed-role/a:b/session"},
		{name: "a session without a name", in: "sts::" + me + "assumed-role/Admin/"},
		{name: "a session with a name too short", in: "sts::" + me + "assumed-role/Admin/s"},
		{name: "a session with a name too long", in: "sts::" + me + "assumed-role/Admin/s" + long},
		{name: "a session at IAM", in: "iam::" + me + "assumed-role/Admin/session"},
		{name: "a federated user", in: "sts::" + me + "federated-user/Bob", canonical: "sts::" + me + "federated-user/Bob"},
		{name: "a federated user with a path", in: "sts::" + me + "federated-user/a/Bob"},
		{name: "a federated user with a name too long", in: "sts::" + me + "federated-user/" + strings.Repeat("b", 33)},
		{name: "a federated user with a name too short", in: "sts::" + me + "federated-user/b"},
		{name: "a group", in: "iam::" + me + "group/Admins"},
		{name: "another service", in: "s3:::bucket"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := arn.Parse("arn:aws:" + c.in)
			if err != nil {
				t.Fatal(err)
			}
			canonical, err := a.Canonical()
			if got := strings.TrimPrefix(canonical.String(), "arn:aws:"); got != c.canonical || (err == nil) != (c.canonical != "") {
				t.Errorf("Canonical() = %q, %v, want %q", got, err, c.canonical)
			}
			if err != nil && !strings.Contains(err.Error(), "names nobody") {
				t.Errorf("the error says %q", err)
			}
			if c.withoutPath == "" {
				c.withoutPath = c.in
			}
			if got := a.WithoutPath().String(); got != "arn:aws:"+c.withoutPath {
				t.Errorf("WithoutPath() = %q, want %q", got, c.withoutPath)
			}
			for what, two := range map[string][2]string{"Role": {pair(a.Role()), c.role}, "User": {pair(a.User()), c.user}, "AssumedRole": {pair(a.AssumedRole()), c.assumed}} {
				if two[0] != two[1] {
					t.Errorf("%s() = %q, want %q", what, two[0], two[1])
				}
			}
		})
	}
}

// The author of a name that IAM would not take is told so, and not that it is of the wrong kind: examples and templates
// have such names.
func TestNamesThatAreTooLong(t *testing.T) {
	const long = "eksctl-my-cluster-nodegroup-standard-wo-NodeInstanceRole-1WP3NUE3O6UCF"
	for in, want := range map[string]string{
		"arn:aws:iam::123456789012:role/" + long:                    long,
		"arn:aws:iam::123456789012:role/team/" + long:               long,
		"arn:aws:iam::123456789012:user/" + long:                    long,
		"arn:aws:sts::123456789012:assumed-role/" + long + "/anna":  long,
		"arn:aws:sts::123456789012:assumed-role/p/" + long + "/ann": long,
		"arn:aws:iam::123456789012:role/" + long[:64]:               "",
		"arn:aws:iam::123456789012:role/" + long[:64] + ":":         "", // no name at all
		"arn:aws:iam::123456789012:role//" + long:                   "",
		"arn:aws:iam::123456789012:instance-profile/" + long:        "",
		"arn:aws:sts::123456789012:assumed-role/" + long:            "",
		"arn:aws:sts::123456789012:assumed-role/dev/" + long:        "", // of a session, which is not IAM's
		"arn:aws:iam:eu-west-1:123456789012:role/" + long:           "",
	} {
		a, err := arn.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := a.LongName(); got != want || ok != (want != "") {
			t.Errorf("%s: %q %t, want %q", in, got, ok, want)
		}
		if _, err := a.Canonical(); want != "" && (err == nil || !strings.Contains(err.Error(), "names nobody: its name has 70 characters, and IAM's have at most 64")) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func pair(a, b string, ok bool) string {
	if !ok {
		return a + b
	}
	return a + " " + b
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"arn:aws:iam::123456789012:user/Alice", "arn:aws:sts::123456789012:assumed-role/a/b/Admin/session", "arn:aws:iam::123456789012:role/a/b/c",
		"arn:aws:sts::123456789012:federated-user/Bob", "arn:aws:iam::123456789012:root", "arn:aws:eks::aws:cluster-access-policy/X", "arn:::::", "arn:aws:sts::1:/",
		"arn:aws:sts::000000000000:assumed-role//0/00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := arn.Parse(s)
		if err != nil {
			if !a.IsZero() {
				t.Fatalf("%q is refused and yet %+v", s, a)
			}
			return
		}
		if a.String() != s {
			t.Fatalf("%q becomes %q", s, a.String())
		}
		canonical, err := a.Canonical()
		if err != nil {
			if !canonical.IsZero() {
				t.Fatalf("%q has no canonical name and yet %+v", s, canonical)
			}
			return
		}
		if again, err := canonical.Canonical(); err != nil || again != canonical {
			t.Fatalf("the canonical name of %q is %q, and of that %q, %v", s, canonical, again, err)
		}
		if back, err := arn.Parse(canonical.String()); err != nil || back != canonical {
			t.Fatalf("the canonical name of %q does not parse: %v", s, err)
		}
		for _, split := range []func(arn.ARN) (string, string, bool){arn.ARN.Role, arn.ARN.User} {
			path, name, ok := split(canonical)
			bare := canonical.WithoutPath()
			if _, same, _ := split(bare); ok && (same != name || len(bare.String()) != len(canonical.String())-len(path)+1) {
				t.Fatalf("%q without path %q is %q", canonical, path, bare)
			}
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		a, err := arn.Parse("arn:aws:sts::123456789012:assumed-role/Node/i-0123456789abcdef0")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := a.Canonical(); err != nil {
			b.Fatal(err)
		}
	}
}
