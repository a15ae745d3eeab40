// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/platform/decision"
)

// trusting trusts names of sessions of a role.
func trusting(t testing.TB, role string, names ...string) identity.Options {
	t.Helper()
	return identity.Options{Trusted: []identity.TrustedSessions{{Role: mustParse(t, role), Names: names}}}
}

func TestWhoseSessionsAreTrusted(t *testing.T) {
	const managed, fargate = "mi-0123456789abcdef0", "fargate-ip-10-0-1-7.eu-west-1.compute.internal"
	hybrid := []identity.AccessEntry{{Name: "e", PrincipalARN: role("h"), Type: identity.TypeHybridLinux}}
	of := func(e identity.AccessEntry) []identity.AccessEntry { return []identity.AccessEntry{e} }
	noInstance := func(session string) string {
		return `no: instance: the session "` + session + `" is not proven to be an instance's, and "system:node:{{SessionName}}" is for instances`
	}
	noName := func(session string) string {
		return `no: trusted-name: the authenticator's configuration trusts the sessions of arn:aws:iam::111122223333:role/h that are named mi-*, edge-1, and this one is named "` + session + `"`
	}
	noNode := func(session string) string {
		return `no: trusted-name: the name of the session, "` + session + `", cannot be a node's name`
	}
	o := trusting(t, role("h"), "mi-*", "edge-1")
	for _, tc := range []struct {
		name     string
		o        identity.Options
		entries  []identity.AccessEntry
		mappings []identity.Mapping
		who      identity.Principal
		trusted  bool
		want     string
	}{
		{"a managed instance of SSM", o, hybrid, nil, session(t, "h", managed), true, "system:node:" + managed + " [system:nodes] by e"},
		{"a certificate's name", o, hybrid, nil, session(t, "h", "edge-1"), true, "system:node:edge-1 [system:nodes] by e"},
		{
			"a pod of Fargate", trusting(t, role("f"), "fargate-ip-*"), of(identity.AccessEntry{Name: "e", PrincipalARN: role("f"), Type: identity.TypeFargateLinux}), nil, session(t, "f", fargate), true,
			"system:node:" + fargate + " [system:nodes system:node-proxier] by e",
		},
		{"in aws-auth", o, nil, []identity.Mapping{awsAuth(role("h"), "system:node:{{SessionName}}", "system:nodes")}, session(t, "h", managed), true, "system:node:" + managed + " [system:nodes] by mapRoles[0]"},
		{
			"in aws-auth, raw", o, nil,
			[]identity.Mapping{awsAuth(role("h"), "system:node:{{SessionNameRaw}}", "system:nodes")},
			session(t, "h", managed), true, "system:node:" + managed + " [system:nodes] by mapRoles[0]",
		},
		{
			"by an object", o, nil,
			[]identity.Mapping{{Source: identity.SourceIdentityMapping, Entry: "o", ARN: role("h"), Username: "system:node:{{SessionName}}", Groups: []string{"system:nodes"}}},
			session(t, "h", managed), true, "system:node:" + managed + " [system:nodes] by o",
		},
		{
			"in the file", o, nil,
			[]identity.Mapping{{Source: identity.SourceFile, Entry: "mapRoles[0]", Kind: identity.KindRole, ARN: role("h"), Username: "system:node:{{SessionName}}", Groups: []string{"system:nodes"}}},
			session(t, "h", managed), true, "system:node:" + managed + " [system:nodes] by mapRoles[0]",
		},
		{"the case of a role's name does not matter", trusting(t, role("H"), "mi-*"), hybrid, nil, session(t, "h", managed), true, "system:node:" + managed + " [system:nodes] by e"},
		{"a path that STS does not say", trusting(t, role("p/h"), "mi-*"), hybrid, nil, session(t, "h", managed), true, "system:node:" + managed + " [system:nodes] by e"},
		{"a path that it says", trusting(t, role("p/h"), "mi-*"), hybrid, nil, session(t, "p/h", managed), true, "system:node:" + managed + " [system:nodes] by e"},
		{
			"another path", trusting(t, role("p/h"), "mi-*"), hybrid, nil, session(t, "q/h", managed), false,
			"no: trusted-name: the authenticator's configuration trusts the sessions of arn:aws:iam::111122223333:role/p/h, and this is one of arn:aws:iam::111122223333:role/q/h",
		},
		{"another path in the entry", trusting(t, role("p/h"), "mi-*"), of(identity.AccessEntry{Name: "e", PrincipalARN: role("q/h"), Type: identity.TypeHybridLinux}), nil, session(t, "h", managed), false, noInstance(managed)},
		{"nothing is trusted", identity.Options{}, hybrid, nil, session(t, "h", managed), false, noInstance(managed)},
		{"another role", trusting(t, role("other"), "mi-*"), hybrid, nil, session(t, "h", managed), false, noInstance(managed)},
		{"the role of another account", trusting(t, "arn:aws:iam::444455556666:role/h", "mi-*"), hybrid, nil, session(t, "h", managed), false, noInstance(managed)},
		{"the role of another partition", trusting(t, "arn:aws-cn:iam::111122223333:role/h", "mi-*"), hybrid, nil, session(t, "h", managed), false, noInstance(managed)},
		{"a session of another account", o, hybrid, nil, principal(t, "arn:aws:sts::444455556666:assumed-role/h/"+managed), false, "no: no-entry: no entry names arn:aws:iam::444455556666:role/h"},
		{
			"an entry for many roles",
			identity.Options{Trusted: slices.Concat(trusting(t, role("hyb"), "mi-*").Trusted, trusting(t, role("hybrid"), "mi-*").Trusted), RolePatterns: true},
			nil,
			[]identity.Mapping{awsAuth(role("hyb*"), "system:node:{{SessionName}}", "system:nodes")},
			session(t, "hybrid", managed), false, noInstance(managed),
		},
		{
			"a user", o, nil,
			[]identity.Mapping{{Source: identity.SourceAWSAuth, Entry: "mapUsers[0]", Kind: identity.KindUser, ARN: "arn:aws:iam::111122223333:user/h", Username: "system:node:{{SessionName}}", Groups: []string{"system:nodes"}}},
			named(user(t, "h"), managed), false, noInstance(managed),
		},
		{"another name", o, hybrid, nil, session(t, "h", "anna"), false, noName("anna")},
		{"a name that begins so", o, hybrid, nil, session(t, "h", "edge-12"), false, noName("edge-12")},
		{"a name that ends so", o, hybrid, nil, session(t, "h", "xmi-1"), false, noName("xmi-1")},
		{"nothing but the beginning", o, hybrid, nil, session(t, "h", "mi-"), false, noNode("mi-")},
		{"upper case", o, hybrid, nil, session(t, "h", "MI-0123456789abcdef0"), false, noNode("MI-0123456789abcdef0")},
		{"upper case behind it", o, hybrid, nil, session(t, "h", "mi-A"), false, noNode("mi-A")},
		{"an @, which becomes a dash", o, hybrid, nil, session(t, "h", "mi-1@2"), false, noNode("mi-1@2")},
		{"an underscore", o, hybrid, nil, session(t, "h", "mi-1_2"), false, noNode("mi-1_2")},
		{"a dot at its end", o, hybrid, nil, session(t, "h", "mi-1."), false, noNode("mi-1.")},
		{"two dots", o, hybrid, nil, session(t, "h", "mi-1..a"), false, noNode("mi-1..a")},
		{"dots", o, hybrid, nil, session(t, "h", "mi-1.example.org"), true, "system:node:mi-1.example.org [system:nodes] by e"},
		{"the longest", o, hybrid, nil, session(t, "h", "mi-"+strings.Repeat("0", 61)), true, "system:node:mi-" + strings.Repeat("0", 61) + " [system:nodes] by e"},
		{"an instance's id", trusting(t, role("h"), "*-0123456789abcdef0"), hybrid, nil, session(t, "h", node), false, noInstance(node)},
		{"what looks like an instance's id", trusting(t, role("h"), "*-edge"), hybrid, nil, session(t, "h", "i-edge"), false, noInstance("i-edge")},
		{"an instance's private DNS name", trusting(t, role("h"), "*.compute.internal"), hybrid, nil, session(t, "h", dnsName), false, noInstance(dnsName)},
		{"an instance with the role", o, hybrid, nil, session(t, "h", node, proven(node, dnsName)), false, "system:node:" + node + " [system:nodes] by e"},
		{
			"an instance whose session is named otherwise", o, hybrid, nil, session(t, "h", managed, proven(node, dnsName)), false,
			`no: instance: the session is named "` + managed + `", and not after the instance ` + node,
		},
		{
			"nodes by their private DNS names", o, of(identity.AccessEntry{Name: "e", PrincipalARN: role("h"), Type: identity.TypeEC2Linux}), nil, session(t, "h", managed), false,
			`no: instance: the session "` + managed + `" is not proven to be an instance's, and "system:node:{{EC2PrivateDNSName}}" is for instances`,
		},
		{
			"a group of instances", o, nil,
			[]identity.Mapping{awsAuth(role("h"), "system:node:{{SessionName}}", "system:nodes", "host:{{EC2PrivateDNSName}}")},
			session(t, "h", managed), false, `no: instance: there is no private DNS name to fill in for "host:{{EC2PrivateDNSName}}"`,
		},
		{"a person's entry", o, of(identity.AccessEntry{Name: "e", PrincipalARN: role("h"), Username: "x:{{SessionName}}"}), nil, session(t, "h", managed), false, "x:" + managed + " [] by e"},
		{
			"another principal of the name", o, of(identity.AccessEntry{Name: "e", PrincipalARN: role("h"), PrincipalID: "AROAEXAMPLEEXAMPLE000", Type: identity.TypeHybridLinux}), nil,
			session(t, "h", managed), false,
			"no: principal-id: AccessEntry e names arn:aws:iam::111122223333:role/h, but it is for the principal AROAEXAMPLEEXAMPLE000, and this is AROAEXAMPLEEXAMPLE123: " +
				"another one of that name, made after the first was deleted",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			made := table(t, tc.o, tc.entries, tc.mappings...)
			for how, got := range map[string]identity.Outcome{"mapped": made.Map(tc.who), "explained": made.Explain(tc.who)} {
				if brief(got) != tc.want || got.Trusted != tc.trusted {
					t.Errorf("%s\ngot  %s (trusted: %v)\nwant %s", how, brief(got), got.Trusted, tc.want)
				}
				if !got.Mapped && got.Fix == "" {
					t.Errorf("%s: nothing says what to do", how)
				}
				if last := len(got.Checks) - 1; tc.trusted && (got.Checks[last].Rule != identity.RuleTrustedName || got.Checks[last].Outcome != decision.Pass) {
					t.Errorf("%s: the check says %+v", how, got.Checks[last])
				}
			}
		})
	}
}

func TestWhatToDoWhereNoNameIsTrusted(t *testing.T) {
	const onlyInstances = "only the instance itself gets it, with the credentials of its instance profile"
	entry := identity.AccessEntry{Name: "e", PrincipalARN: role("q/h"), Type: identity.TypeHybridLinux}
	for _, tc := range []struct {
		name, session string
		o             identity.Options
		want          string
	}{
		{"nothing is trusted", "mi-1", identity.Options{}, onlyInstances + "; of hybrid nodes and those of AWS's Fargate nothing can be proven: if a service names the sessions of this role, and not the principal that assumes it, " +
			"trust them in the authenticator's configuration (mapping.trustedSessionNames); otherwise let such nodes join with bootstrap tokens"},
		{"an instance", node, identity.Options{}, onlyInstances},
		{"another path", "mi-1", trusting(t, role("p/h"), "mi-*"), onlyInstances + "; of hybrid nodes and those of AWS's Fargate nothing can be proven: " +
			"the authenticator's configuration trusts the sessions of arn:aws:iam::111122223333:role/p/h: write the same role in both"},
		{"another name", "anna", trusting(t, role("h"), "mi-*"), "add it to mapping.trustedSessionNames there if a service sets it"},
		{"no node's name", "mi-A", trusting(t, role("h"), "mi-*"), "name the session after the node: lower-case letters, digits, - and ."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := table(t, tc.o, []identity.AccessEntry{entry}).Map(session(t, "h", tc.session)).Fix; got != tc.want {
				t.Errorf("\ngot  %s\nwant %s", got, tc.want)
			}
			entry := entry
			entry.Type = identity.TypeEC2Linux
			if got := table(t, tc.o, []identity.AccessEntry{entry}).Map(session(t, "h", tc.session)).Fix; got != onlyInstances {
				t.Errorf("of instances: %s", got)
			}
		})
	}
}

func TestAnEntrySaysThatSessionsAreTrusted(t *testing.T) {
	o := trusting(t, role("p/h"), "mi-*", "edge-1")
	entries := []identity.AccessEntry{
		{Name: "hybrid", PrincipalARN: role("h"), Type: identity.TypeHybridLinux},
		{Name: "again", PrincipalARN: role("h"), Type: identity.TypeHybridLinux}, // is not used
	}
	auth := awsAuth(role("h"), "system:node:{{SessionName}}", "system:nodes")
	made, problems := identity.NewTable(o, entries, []identity.Mapping{auth, awsAuth(role("dev"), "x")})
	want := []string{"AccessEntry again spec.principalARN: names the same principal as hybrid, which comes first; the entry is not used; remove one of the two; here the first counts, aws-iam-authenticator takes the last"}
	if diff := cmp.Diff(want, told(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	trusts := []identity.Trust{
		{Source: identity.SourceAccessEntry, Entry: "hybrid", Role: role("p/h"), Names: []string{"mi-*", "edge-1"}},
		{Source: identity.SourceAWSAuth, Entry: "mapRoles[0]", Role: role("p/h"), Names: []string{"mi-*", "edge-1"}},
	}
	if diff := cmp.Diff(trusts, made.Trusts()); diff != "" {
		t.Errorf("trusts (-want +got):\n%s", diff)
	}
	if got := trusts[0].String(); got != "nodes are named after the sessions of arn:aws:iam::111122223333:role/p/h: the authenticator's configuration trusts the names mi-*, edge-1" {
		t.Error(got)
	}
	o.Mode = identity.ModeConfigMap
	if made, _ = identity.NewTable(o, entries, nil); len(made.Trusts()) > 0 {
		t.Errorf("the mode does not ask access entries, but %v", made.Trusts())
	}
	_, problems = identity.NewTable(trusting(t, role("p/h"), "mi-*"), []identity.AccessEntry{{Name: "e", PrincipalARN: role("q/h"), Type: identity.TypeHybridLinux}}, nil)
	if len(problems) != 1 || problems[0].Fix != "the authenticator's configuration trusts the sessions of arn:aws:iam::111122223333:role/p/h: write the same role in both" {
		t.Errorf("another path: %v", told(problems))
	}
}

func TestWhatIsWronglyTrustedIsNotTrusted(t *testing.T) {
	const fix = "; the entry is not used; correct the authenticator's configuration; until then no session of this role is trusted"
	entries := []identity.AccessEntry{{Name: "e", PrincipalARN: role("h"), Type: identity.TypeHybridLinux}}
	good := identity.TrustedSessions{Role: mustParse(t, role("h")), Names: []string{"mi-*"}}
	for _, tc := range []struct {
		name string
		all  []identity.TrustedSessions
		want string
	}{
		{"no role", []identity.TrustedSessions{{Names: []string{"mi-*"}}}, ` trustedSessionNames[0]: is not right: "" must be arn:aws:iam::ACCOUNT:role/NAME, with the role's path if it has one` + fix},
		{"one name of two", []identity.TrustedSessions{{Role: good.Role, Names: []string{"mi-*", "*"}}}, ` trustedSessionNames[0]: is not right: "*" must have at least 3 characters beside *, as with less it is nearly every name` + fix},
		{"no names", []identity.TrustedSessions{{Role: good.Role}}, " trustedSessionNames[0]: is not right: arn:aws:iam::111122223333:role/h has no names" + fix},
		{"twice", []identity.TrustedSessions{good, {Role: mustParse(t, role("p/H")), Names: []string{"edge-1"}}}, " trustedSessionNames[1]: is not right: arn:aws:iam::111122223333:role/p/H is there twice" + fix},
		{"three times", []identity.TrustedSessions{good, good, good}, " trustedSessionNames[1]: is not right: arn:aws:iam::111122223333:role/h is there twice" + fix},
		{"first wrong, then right", []identity.TrustedSessions{{Role: good.Role, Names: []string{"*"}}, good}, ` trustedSessionNames[0]: is not right: "*" must have at least 3 characters beside *, as with less it is nearly every name` + fix},
	} {
		t.Run(tc.name, func(t *testing.T) {
			made, problems := identity.NewTable(identity.Options{Trusted: tc.all}, entries, nil)
			if got := strings.TrimPrefix(problems[0].String(), string(problems[0].Source)); got != tc.want {
				t.Errorf("\ngot  %s\nwant %s", got, tc.want)
			}
			for _, name := range []string{"mi-1", "edge-1"} {
				if o := made.Map(session(t, "h", name)); o.Mapped {
					t.Errorf("%s became %s", name, o.User.Name)
				}
			}
		})
	}
}

func TestWhatATrustedNameMayBe(t *testing.T) {
	for name, want := range map[string]string{
		"mi-*":                  "",
		"edge-1":                "",
		"fargate-ip-*":          "",
		"*.edge.example":        "",
		"edge-*.example":        "",
		strings.Repeat("a", 64): "",
		strings.Repeat("a", 65): "must be at most 64 characters, as no session has a longer name",
		"":                      "must have at least 3 characters beside *, as with less it is nearly every name",
		"*":                     "must have at least 3 characters beside *, as with less it is nearly every name",
		"mi*":                   "must have at least 3 characters beside *, as with less it is nearly every name",
		"**":                    "must have one * at most",
		"mi-*-*":                "must have one * at most",
		"MI-*":                  "must be the name of a node, of lower-case letters, digits, - and ., with one * for any of them",
		"mi-[0-9]":              "must be the name of a node, of lower-case letters, digits, - and ., with one * for any of them",
		"mi-?":                  "must be the name of a node, of lower-case letters, digits, - and ., with one * for any of them",
		`mi-\*`:                 "must be the name of a node, of lower-case letters, digits, - and ., with one * for any of them",
		"mi-1@2":                "must be the name of a node, of lower-case letters, digits, - and ., with one * for any of them",
		"mi 1":                  "must be the name of a node, of lower-case letters, digits, - and ., with one * for any of them",
		"-mi-*":                 "must be the name of a node, of lower-case letters, digits, - and ., with one * for any of them",
		"edge..*":               "must be the name of a node, of lower-case letters, digits, - and ., with one * for any of them",
		"edge-":                 "must be the name of a node, of lower-case letters, digits, - and ., with one * for any of them",
		"i-0123*":               "must not begin with i- or ip-, as names of instances do: these are proven and never trusted",
		"ip-*":                  "must not begin with i- or ip-, as names of instances do: these are proven and never trusted",
	} {
		got := ""
		if err := identity.CheckTrustedName(name); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	for _, who := range []string{"iam::111122223333:user/h", "sts::111122223333:assumed-role/h/ss", "iam::111122223333:instance-profile/h", "iam::111122223333:root"} {
		if err := identity.CheckTrustedRole(mustParse(t, "arn:aws:"+who)); err == nil {
			t.Errorf("%s is taken for a role", who)
		}
	}
}

// isTrusted says whether the name of a session is trusted, as plainly as can be.
func isTrusted(all []identity.TrustedSessions, p identity.Principal) bool {
	for _, t := range all {
		for _, name := range t.Names {
			start, end, _ := strings.Cut(name, "*")
			if strings.EqualFold(t.Role.WithoutPath().String(), p.CanonicalARN.WithoutPath().String()) && strings.HasPrefix(p.SessionName, start) && strings.HasSuffix(p.SessionName, end) {
				return !strings.HasPrefix(p.SessionName, "i-") && !strings.HasPrefix(p.SessionName, "ip-") && len(validation.IsDNS1123Subdomain(p.SessionName)) == 0
			}
		}
	}
	return false
}

// TestOnlyTrustedSessionsAreNodesWithoutProof wants that they are, and that no others are.
func TestOnlyTrustedSessionsAreNodesWithoutProof(t *testing.T) {
	trusted, others := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		// Parts that are all drawn at random are trusted once in a hundred times. Mostly one part is, and the others
		// are the first of their kind, which are trusted.
		const parts = 6
		free, n := rapid.IntRange(0, parts).Draw(rt, "free part"), 0
		draw := func(rt *rapid.T, what string, of ...string) string {
			defer func() { n++ }()
			if free != n && free != parts {
				return of[0]
			}
			return rapid.SampledFrom(of).Draw(rt, what)
		}
		o := trusting(t, draw(rt, "trusted role", role("a"), role("A"), role("b"), "arn:aws:iam::444455556666:role/a"), draw(rt, "name", "mi-*", "*.internal", "*-0123456789abcdef0", "anna"), "edge-1")
		kind := identity.EntryType(draw(rt, "type", string(identity.TypeHybridLinux), string(identity.TypeFargateLinux), string(identity.TypeEC2Linux)))
		of := draw(rt, "account", account, "444455556666")
		entry := identity.AccessEntry{Name: "e", PrincipalARN: "arn:aws:iam::" + of + ":role/a", Type: kind}
		name := draw(rt, "session", "mi-1", "MI-1", "mi-1@2", "anna", "edge-1", node, dnsName, "b.internal", "i-x.internal")
		who := principal(t, "arn:aws:sts::"+of+":assumed-role/"+draw(rt, "role", "a", "b")+"/"+name)
		made, problems := identity.NewTable(o, []identity.AccessEntry{entry}, nil)
		want := kind != identity.TypeEC2Linux && who.CanonicalARN.String() == entry.PrincipalARN && isTrusted(o.Trusted, who)
		got := made.Map(who)
		if got.Mapped != want || got.Trusted != want || want && (got.User.Name != "system:node:"+name || len(problems) > 0) {
			rt.Fatalf("%s became %q by %+v of %+v (%v); want trusted: %v", who.ARN, got.User.Name, entry, o.Trusted, problems, want)
		}
		if want {
			trusted++
		} else {
			others++
		}
	})
	if trusted == 0 || others == 0 {
		t.Errorf("%d were trusted and %d not, so this shows nothing", trusted, others)
	}
}

// FuzzTrustedNames looks for a session that becomes a node whose name was not trusted, or is none.
func FuzzTrustedNames(f *testing.F) {
	f.Add("mi-*", "mi-0123456789abcdef0")
	f.Add("*.example", "i-0.example")
	f.Add("edge-*.example", "edge-.example")
	f.Add("mi-[a]*", "mi-a")
	f.Add("abc", "abc")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		who, err := arn.Parse("arn:aws:sts::" + account + ":assumed-role/h/" + name)
		if _, _, ok := who.AssumedRole(); err != nil || !ok {
			return
		}
		made, _ := identity.NewTable(trusting(t, role("h"), pattern), []identity.AccessEntry{{Name: "e", PrincipalARN: role("h"), Type: identity.TypeHybridLinux}}, nil)
		o := made.Map(session(t, "h", name))
		if !o.Mapped {
			return
		}
		start, end, many := strings.Cut(pattern, "*")
		switch {
		case !o.Trusted || o.User.Name != "system:node:"+name, strings.HasPrefix(name, "i-"), strings.HasPrefix(name, "ip-"), len(validation.IsDNS1123Subdomain(name)) > 0,
			!many && pattern != name, len(start+end) < 3, len(name) < len(start+end), !strings.HasPrefix(name, start), !strings.HasSuffix(name, end):
			t.Errorf("with %q the session %q became %q", pattern, name, o.User.Name)
		}
	})
}
