// SPDX-License-Identifier: Apache-2.0

package iam_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/iam"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name  string
		check func(string) error
		in    string
		ok    bool
	}{
		{"a user's name may have all the signs", iam.CheckUserName, "a_B+9=,.@-", true},
		{"a user's name may have 64 characters", iam.CheckUserName, strings.Repeat("a", 64), true},
		{"a user's name may not have 65", iam.CheckUserName, strings.Repeat("a", 65), false},
		{"a user's name is not empty", iam.CheckUserName, "", false},
		{"a user's name has no slash", iam.CheckUserName, "a/b", false},
		{"a user's name has no wildcard", iam.CheckUserName, "a*", false},
		{"a user's name has no letters outside ASCII", iam.CheckUserName, "ä", false},
		{"a user's name is UTF-8", iam.CheckUserName, "a\xff", false},
		{"a user's name is not the sign for a bad character", iam.CheckUserName, "\uFFFD", false},
		{"a role's name may have 64 characters", iam.CheckRoleName, strings.Repeat("r", 64), true},
		{"a role's name may not have 65", iam.CheckRoleName, strings.Repeat("r", 65), false},
		{"a profile's name may have 128 characters", iam.CheckProfileName, strings.Repeat("r", 128), true},
		{"a profile's name may not have 129", iam.CheckProfileName, strings.Repeat("r", 129), false},
		{"a policy's name may not have 129 characters", iam.CheckPolicyName, strings.Repeat("r", 129), false},
		{"a policy's name has no space", iam.CheckPolicyName, "a b", false},
		{"a session's name has two characters at least", iam.CheckSessionName, "a", false},
		{"an instance id is a session's name", iam.CheckSessionName, "i-0123456789abcdef0", true},
		{"a session's name has no colon", iam.CheckSessionName, "a:b", false},
		{"a session's name has no line end", iam.CheckSessionName, "ab\n", false},
		{"a session's name may not have 65 characters", iam.CheckSessionName, strings.Repeat("s", 65), false},
		{"an external id may have colon and slash", iam.CheckExternalID, "a:b/c", true},
		{"an external id has two characters at least", iam.CheckExternalID, "a", false},
		{"an account id has twelve digits", iam.CheckAccountID, "000000000000", true},
		{"an account id has no eleven digits", iam.CheckAccountID, "00000000000", false},
		{"an account id has no letters", iam.CheckAccountID, "00000000000a", false},
		{"an alias is a word", iam.CheckAlias, "my-team", true},
		{"an alias does not begin with a hyphen", iam.CheckAlias, "-team", false},
		{"an alias has no two hyphens in a row", iam.CheckAlias, "my--team", false},
		{"an alias has three characters at least", iam.CheckAlias, "ab", false},
		{"a slash is a path", iam.CheckPath, "/", true},
		{"a path has text between slashes", iam.CheckPath, "/a/b/", true},
		{"a path ends with a slash", iam.CheckPath, "/a", false},
		{"a path begins with a slash", iam.CheckPath, "a/", false},
		{"a role is called as one likes", iam.CheckRoleName, "AWSReserved", true},
		{"the roles of IAM Identity Center are its own", iam.CheckRoleName, "AWSReservedSSO_Admin_0123456789abcdef", false},
		{"in no capitals either", iam.CheckRoleName, "awsreservedsso_x", false},
		{"a path has no empty part", iam.CheckPath, "/a//", false},
		{"a path has no wildcard", iam.CheckPath, "/a*/", false},
		{"a path has no colon", iam.CheckPath, "/a:b/", false},
		{"a path has no space", iam.CheckPath, "/a b/", false},
		{"a path may not have 513 characters", iam.CheckPath, "/" + strings.Repeat("a", 511) + "/", false},
		{"the end of a prefix is free", iam.CheckPathPrefix, "/a", true},
		{"a prefix begins with a slash", iam.CheckPathPrefix, "a", false},
		{"a description may be empty", iam.CheckDescription, "", true},
		{"a description has no control characters", iam.CheckDescription, "\x00", false},
		{"a description may not have 1001 characters", iam.CheckDescription, strings.Repeat("d", 1001), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.check(c.in)
			if (err == nil) != c.ok {
				t.Fatalf("%q: %v", c.in, err)
			}
			if invalid := (*iam.Invalid)(nil); err != nil && (!errors.As(err, &invalid) || invalid.Field == "" || len(err.Error()) > 400) {
				t.Fatalf("%q is told as %v", c.in, err)
			}
		})
	}
}

func TestTags(t *testing.T) {
	many := make([]iam.Tag, iam.MaxTags+1)
	for i := range many {
		many[i].Key = fmt.Sprint("k", i)
	}
	for name, c := range map[string]struct {
		tags []iam.Tag
		want string
	}{
		"tags may have spaces and letters of all scripts": {[]iam.Tag{{"Kosten Stelle", "Ä/1"}}, ""},
		"a value may be empty":                            {[]iam.Tag{{"a", ""}}, ""},
		"fifty is fine":                                   {many[:50], ""},
		"fifty-one is too many":                           {many, "less than or equal to 50"},
		"a key is not empty":                              {[]iam.Tag{{"", "v"}}, "Tags.member.1.Key"},
		"a key may not have 129 characters":               {[]iam.Tag{{strings.Repeat("k", 129), ""}}, "Tags.member.1.Key"},
		"a value may not have 257 characters":             {[]iam.Tag{{"k", strings.Repeat("v", 257)}}, "Tags.member.1.Value"},
		"keys of AWS are reserved":                        {[]iam.Tag{{"AWS:x", ""}}, "reserved"},
		"case does not make another key":                  {[]iam.Tag{{"a", ""}, {"A", ""}}, "Tags.member.2.Key"},
		"a value has no star":                             {[]iam.Tag{{"a", "*"}}, "Tags.member.1.Value"},
	} {
		t.Run(name, func(t *testing.T) {
			err := iam.CheckTags(c.tags)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestDurations(t *testing.T) {
	role := iam.Role{Name: "r", MaxSession: 2 * time.Hour}
	_, atMost := iam.CheckSessionToken(36*time.Hour, false)
	_, tooLong := iam.CheckSessionToken(36*time.Hour+time.Second, false)
	_, tooShort := iam.CheckSessionToken(899*time.Second, false)
	for _, c := range []struct {
		name string
		err  error
		ok   bool
	}{
		{"a role's sessions may last an hour", iam.CheckMaxSession(time.Hour), true},
		{"a role's sessions may last twelve hours", iam.CheckMaxSession(12 * time.Hour), true},
		{"a role's sessions may not be limited to less than an hour", iam.CheckMaxSession(time.Hour - time.Second), false},
		{"a role's sessions may not last more than twelve hours", iam.CheckMaxSession(43201 * time.Second), false},
		{"durations are whole seconds", iam.CheckMaxSession(time.Hour + time.Millisecond), false},
		{"a session may last as long as the role says", iam.CheckAssume(role, 2*time.Hour, false), true},
		{"a session may not last longer than the role says", iam.CheckAssume(role, 2*time.Hour+time.Second, false), false},
		{"a session lasts 900 seconds at least", iam.CheckAssume(role, 899*time.Second, false), false},
		{"a session may last 900 seconds", iam.CheckAssume(role, 900*time.Second, false), true},
		{"a chained session may last an hour", iam.CheckAssume(role, time.Hour, true), true},
		{"a chained session may not last longer", iam.CheckAssume(role, time.Hour+time.Second, true), false},
		{"a session may not last longer than any role's", iam.CheckAssume(role, 12*time.Hour+time.Second, false), false},
		{"a role without a limit grants an hour", iam.CheckAssume(iam.Role{}, time.Hour+time.Second, false), false},
		{"a session token may last 36 hours", atMost, true},
		{"a session token may not last longer", tooLong, false},
		{"a session token lasts 900 seconds at least", tooShort, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if (c.err == nil) != c.ok {
				t.Fatal(c.err)
			}
		})
	}
	for want, err := range map[string]error{ // AWS's words
		"The requested DurationSeconds exceeds the MaxSessionDuration set for this role.":                                                                    iam.CheckAssume(role, 3*time.Hour, false),
		"The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining.":                                                 iam.CheckAssume(role, 3*time.Hour, true),
		"1 validation error detected: Value '123' at 'durationSeconds' failed to satisfy constraint: Member must have value greater than or equal to 900":    iam.CheckAssume(role, 123*time.Second, false),
		"1 validation error detected: Value '43201' at 'durationSeconds' failed to satisfy constraint: Member must have value less than or equal to 43200":   iam.CheckAssume(role, 43201*time.Second, true),
		"1 validation error detected: Value '60' at 'maxSessionDuration' failed to satisfy constraint: Member must have value greater than or equal to 3600": iam.CheckMaxSession(time.Minute),
		"1 validation error detected: Value '129601' at 'durationSeconds' failed to satisfy constraint: Member must have value less than or equal to 129600": tooLong,
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if got, err := iam.CheckSessionToken(12*time.Hour, true); got != time.Hour || err != nil {
		t.Errorf("root gets %s, %v", got, err)
	}
}

func TestLimits(t *testing.T) {
	if err := iam.CheckNewKey(iam.User{Name: "a"}, 1); err != nil {
		t.Error("a second key was refused:", err)
	}
	limit := (*iam.Limit)(nil)
	if err := iam.CheckNewKey(iam.User{Name: "a"}, 2); !errors.As(err, &limit) {
		t.Error("a third key was let through:", err)
	}
	grants := iam.Grants{Attached: strings.Split("a b c d e f g h i j", " ")}
	if grants.CheckAttach("j") != nil || grants.CheckAttach("k") == nil {
		t.Error("ten policies and one of them again are fine, an eleventh is not")
	}
	policy := iam.Policy{Name: "p", Versions: []iam.PolicyVersion{{ID: "v1"}, {ID: "v10"}, {ID: "v9"}, {ID: "v3"}}}
	if next := policy.NextVersion(); next != "v11" || policy.CheckNewVersion() != nil {
		t.Errorf("the fifth version, %s, was refused, or is no new one: %v", next, policy.CheckNewVersion())
	}
	policy.Versions = append(policy.Versions, iam.PolicyVersion{ID: "v11"})
	if err := policy.CheckNewVersion(); !errors.As(err, &limit) {
		t.Error("a sixth version was let through:", err)
	}
	if _, err := iam.KeyStatus("active").Parse(); err == nil {
		t.Error("a status has one spelling")
	}
}

func TestIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range []iam.Prefix{iam.UserPrefix, iam.RolePrefix, iam.ProfilePrefix, iam.PolicyPrefix, iam.GroupPrefix, iam.KeyPrefix, iam.SessionKeyPrefix} {
		want := 21
		if p == iam.KeyPrefix || p == iam.SessionKeyPrefix {
			want = 20
		}
		for range 200 {
			id, err := iam.NewID(p, rand.Reader)
			if err != nil || len(id) != want || !iam.IsID(p, id) || seen[id] {
				t.Fatalf("%s made %q, %v", p, id, err)
			}
			seen[id] = true
			if iam.IsID(p, id[:want-1]) || iam.IsID(p, id+"A") || iam.IsID(p, id[:want-1]+"1") || iam.IsID(p, strings.ToLower(id)) || iam.IsID("", id) {
				t.Fatalf("%s is taken for an id in a wrong form too", id)
			}
		}
	}
	if _, err := iam.NewID("AXXX", rand.Reader); err == nil {
		t.Error("an unknown prefix made an id")
	}
	if _, err := iam.NewID(iam.UserPrefix, strings.NewReader("short")); err == nil {
		t.Error("an id was made of too little chance")
	}
	if _, err := iam.NewSecret(strings.NewReader("short")); err == nil {
		t.Error("a secret was made of too little chance")
	}
}

func TestASecretShowsNowhere(t *testing.T) {
	now := time.Date(2026, 11, 21, 14, 0, 0, 5, time.UTC)
	key, err := iam.NewAccessKey(iam.User{ID: "AIDAAAAAAAAAAAAAAAAAA", Name: "alice", Account: "000000000000"}, now, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := key.Secret.Reveal()
	if len(text) != 40 || !key.Usable() || key.Created.Nanosecond() != 0 {
		t.Fatalf("the key is %v with a secret of %d characters", key, len(text))
	}
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "key", key, "secret", key.Secret)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "key", key, "pointer", &key, "secret", key.Secret)
	fmt.Fprintf(&out, "%v %+v %#v %s %q %x %v %#v", key, key, key, key.Secret, key.Secret, key.Secret, &key, key.Secret)
	asJSON, err := json.Marshal(key)
	out.Write(asJSON)
	asXML, err2 := xml.Marshal(key)
	out.Write(asXML)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if strings.Contains(out.String(), text) || strings.Contains(out.String(), fmt.Sprintf("%x", text)) {
		t.Fatal("the secret is in:", out.String())
	}
	if _, err := iam.NewAccessKey(iam.User{Name: "alice"}, now, rand.Reader); err == nil {
		t.Error("a key was made for nobody")
	}
	key.Status = iam.Inactive
	if key.Usable() {
		t.Error("an inactive key is usable")
	}
}

func TestARNs(t *testing.T) {
	const account = "000000000000"
	for want, got := range map[string]fmt.Stringer{
		"arn:aws:iam::000000000000:root":                    iam.Account{ID: account}.RootARN(),
		"arn:aws:iam::000000000000:user/alice":              iam.User{Account: account, Path: "/", Name: "alice"}.ARN(),
		"arn:aws:iam::000000000000:user/team/alice":         iam.User{Account: account, Path: "/team/", Name: "alice"}.ARN(),
		"arn:aws:iam::000000000000:role/a/b/node":           iam.Role{Account: account, Path: "/a/b/", Name: "node"}.ARN(),
		"arn:aws:sts::000000000000:assumed-role/node/i-1":   iam.Role{Account: account, Path: "/a/b/", Name: "node"}.SessionARN("i-1"),
		"arn:aws:iam::000000000000:instance-profile/p":      iam.InstanceProfile{Account: account, Name: "p"}.ARN(),
		"arn:aws:iam::aws:policy/AdministratorAccess":       iam.Policy{Account: iam.AWSAccount, Path: "/", Name: "AdministratorAccess"}.ARN(),
		"arn:aws:iam::000000000000:policy/service-role/own": iam.Policy{Account: account, Path: "/service-role/", Name: "own"}.ARN(),
	} {
		if got.String() != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := (iam.Role{ID: "AROAX"}).SessionID("s"); got != "AROAX:s" {
		t.Error("the id of a session is", got)
	}
	p := iam.Policy{Default: "v2", Versions: []iam.PolicyVersion{{ID: "v1", Document: "old"}, {ID: "v2", Document: "new"}}}
	if text, ok := p.Document(); text != "new" || !ok {
		t.Error("the version in force is", text, ok)
	}
	if _, ok := (iam.Policy{Default: "v3"}).Document(); ok {
		t.Error("a version that is not there is in force")
	}
}
