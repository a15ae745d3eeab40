// SPDX-License-Identifier: Apache-2.0

package iampolicy_test

import (
	"errors"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

// directory has alice and the role node, whose ids a test may change.
type directory struct{ alice, node string }

func (d directory) HasAccount(a string) bool { return a == account || a == foreignAccount }

func (d directory) UserID(a, path, name string) (string, bool) {
	return d.alice, a == account && path == "/" && name == "alice" && d.alice != ""
}

func (d directory) RoleID(a, path, name string) (string, bool) {
	return d.node, a == account && (path == "/app/" || path == "") && name == "node" && d.node != ""
}

func (d directory) ARNOf(id string) (arn.ARN, bool) {
	switch {
	case id == d.alice && id != "":
		return iam.User{Account: account, Path: "/", Name: "alice"}.ARN(), true
	case id == d.node && id != "":
		return iam.Role{Account: account, Path: "/app/", Name: "node"}.ARN(), true
	}
	return arn.ARN{}, false
}

func trustOf(principal string) string {
	return statement(`"Effect":"Allow","Action":"sts:AssumeRole","Principal":` + principal)
}

func TestAssume(t *testing.T) {
	all := directory{aliceID, nodeID}
	may := []iampolicy.Named{{Name: "may", Document: parse(t, iampolicy.Managed, statement(`"Effect":"Allow","Action":"sts:AssumeRole","Resource":"`+roleARN+`"`))}}
	mayNot := []iampolicy.Named{{Name: "not", Document: parse(t, iampolicy.Managed, statement(`"Effect":"Deny","Action":"sts:*","Resource":"*"`))}}
	other := iampolicy.Named{Name: "other", Document: parse(t, iampolicy.Managed, statement(`"Effect":"Allow","Action":"iam:*","Resource":"*"`))}
	foreign := iampolicy.Caller{ARN: must(t, "arn:aws:iam::444455556666:user/eve"), Account: foreignAccount, ID: "AIDABBBBBBBBBBBBBBBBB"}
	again := alice(t)
	again.ID = "AIDACCCCCCCCCCCCCCCCC"
	elsewhere := session(t)
	elsewhere.Session = "i-2"
	ec2 := iampolicy.Caller{Service: "ec2.amazonaws.com"}
	const byName = `{"AWS":"arn:aws:iam::111122223333:user/alice"}`
	for name, c := range map[string]struct {
		principal string
		caller    iampolicy.Caller
		rights    iampolicy.Rights
		want      iampolicy.Verdict
	}{
		"who is named needs no policy":                     {byName, alice(t), iampolicy.Rights{}, iampolicy.Allow},
		"who is named may be denied by the own policies":   {byName, alice(t), iampolicy.Rights{Identity: mayNot}, iampolicy.Deny},
		"who has the name again is another":                {byName, again, iampolicy.Rights{Identity: may}, iampolicy.Neutral},
		"who is not named may not":                         {byName, session(t), iampolicy.Rights{Identity: may}, iampolicy.Neutral},
		"the account alone is not enough":                  {`{"AWS":"111122223333"}`, alice(t), iampolicy.Rights{}, iampolicy.Neutral},
		"the account's root alone is not enough":           {`{"AWS":"arn:aws:iam::111122223333:root"}`, alice(t), iampolicy.Rights{}, iampolicy.Neutral},
		"the account and a policy are enough":              {`{"AWS":"arn:aws:iam::111122223333:root"}`, alice(t), iampolicy.Rights{Identity: may}, iampolicy.Allow},
		"everybody is a user of the account":               {`"*"`, alice(t), iampolicy.Rights{}, iampolicy.Allow},
		"everybody is a session of the account":            {`{"AWS":"*"}`, session(t), iampolicy.Rights{}, iampolicy.Allow},
		"everybody is not another account's without more":  {`"*"`, foreign, iampolicy.Rights{}, iampolicy.Neutral},
		"everybody, and a policy of another account":       {`"*"`, foreign, iampolicy.Rights{Identity: may}, iampolicy.Allow},
		"everybody, and an own policy that denies":         {`"*"`, alice(t), iampolicy.Rights{Identity: mayNot}, iampolicy.Deny},
		"everybody, within a boundary":                     {`"*"`, alice(t), iampolicy.Rights{Boundary: &other}, iampolicy.Neutral},
		"everybody, within a session policy":               {`"*"`, session(t), iampolicy.Rights{Scoped: true}, iampolicy.Neutral},
		"a user that is named is not bound":                {byName, alice(t), iampolicy.Rights{Boundary: &other}, iampolicy.Allow},
		"a user that is named is denied by a boundary":     {byName, alice(t), iampolicy.Rights{Boundary: &mayNot[0]}, iampolicy.Deny},
		"a role that is named is bound":                    {`{"AWS":"` + roleARN + `"}`, session(t), iampolicy.Rights{Boundary: &other}, iampolicy.Neutral},
		"a role that is named, within its boundary":        {`{"AWS":"` + roleARN + `"}`, session(t), iampolicy.Rights{Boundary: &may[0]}, iampolicy.Allow},
		"a session that is named is not bound":             {`{"AWS":"arn:aws:sts::111122223333:assumed-role/node/i-1"}`, session(t), iampolicy.Rights{Scoped: true, Boundary: &other}, iampolicy.Allow},
		"the account, a policy and a boundary":             {`{"AWS":"111122223333"}`, alice(t), iampolicy.Rights{Identity: may, Boundary: &other}, iampolicy.Neutral},
		"everybody and a policy are enough":                {`{"AWS":"*"}`, alice(t), iampolicy.Rights{Identity: may}, iampolicy.Allow},
		"another account needs a policy there":             {`{"AWS":"444455556666"}`, foreign, iampolicy.Rights{}, iampolicy.Neutral},
		"another account with a policy":                    {`{"AWS":"444455556666"}`, foreign, iampolicy.Rights{Identity: may}, iampolicy.Allow},
		"another account is not this one":                  {`{"AWS":"111122223333"}`, foreign, iampolicy.Rights{Identity: may}, iampolicy.Neutral},
		"a role is all its sessions":                       {`{"AWS":"` + roleARN + `"}`, session(t), iampolicy.Rights{}, iampolicy.Allow},
		"a session is itself":                              {`{"AWS":"arn:aws:sts::111122223333:assumed-role/node/i-1"}`, session(t), iampolicy.Rights{}, iampolicy.Allow},
		"a session is no other":                            {`{"AWS":"arn:aws:sts::111122223333:assumed-role/node/i-1"}`, elsewhere, iampolicy.Rights{Identity: may}, iampolicy.Neutral},
		"a session with session policies needs them":       {`{"AWS":"` + roleARN + `"}`, session(t), iampolicy.Rights{Scoped: true}, iampolicy.Neutral},
		"a session with session policies that allow":       {`{"AWS":"` + roleARN + `"}`, session(t), iampolicy.Rights{Scoped: true, Session: may}, iampolicy.Allow},
		"a service that is named":                          {`{"Service":"ec2.amazonaws.com"}`, ec2, iampolicy.Rights{}, iampolicy.Allow},
		"a service that is not named":                      {`{"Service":"eks.amazonaws.com"}`, ec2, iampolicy.Rights{}, iampolicy.Neutral},
		"everybody is no service":                          {`"*"`, ec2, iampolicy.Rights{Identity: may}, iampolicy.Neutral},
		"a service is nobody of the account":               {`{"Service":"ec2.amazonaws.com"}`, alice(t), iampolicy.Rights{Identity: may}, iampolicy.Neutral},
		"root takes no roles":                              {`{"AWS":"111122223333"}`, iampolicy.Caller{ARN: iam.RootARN(account), Account: account, ID: account}, iampolicy.Rights{Root: true}, iampolicy.Neutral},
		"a provider of identities is not served as caller": {`{"Federated":"arn:aws:iam::111122223333:oidc-provider/x.example"}`, alice(t), iampolicy.Rights{Identity: may}, iampolicy.Neutral},
	} {
		t.Run(name, func(t *testing.T) {
			bound, err := parse(t, iampolicy.Trust, trustOf(c.principal)).Bind(all)
			if err != nil {
				t.Fatal(err)
			}
			text, err := bound.Text()
			if err != nil {
				t.Fatal(err)
			}
			kept := parse(t, iampolicy.Trust, text) // as it is kept
			r := iampolicy.Request{Caller: c.caller, Action: "sts:AssumeRole", Resource: roleARN, Context: iampolicy.NewContext(c.caller, iampolicy.Facts{})}
			if got := iampolicy.Assume(iampolicy.Named{Name: "trust", Document: kept}, account, c.rights, r); got.Verdict != c.want || got.Reason == "" {
				t.Errorf("got %+v, want %v", got, c.want)
			}
		})
	}
	r := iampolicy.Request{Caller: alice(t), Action: "sts:AssumeRole", Resource: roleARN}
	if got := iampolicy.Assume(iampolicy.Named{Document: parse(t, iampolicy.Trust, trustOf(byName))}, account, iampolicy.Rights{Identity: may}, r); got.Verdict != iampolicy.Neutral {
		t.Error("a policy that is not bound let somebody in:", got)
	}
	bound, err := parse(t, iampolicy.Trust, trustOf(byName)).Bind(all)
	if err != nil {
		t.Fatal(err)
	}
	named := iampolicy.Named{Name: "trust", Document: bound}
	// A Deny for everybody denies a role to instances, too.
	for _, principal := range []string{`"*"`, `{"AWS":"*"}`} {
		closed := parse(t, iampolicy.Trust, `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"Service":"ec2.amazonaws.com"}},`+
			`{"Effect":"Deny","Action":"sts:*","Principal":`+principal+`}]}`)
		for _, caller := range []iampolicy.Caller{ec2, alice(t)} {
			if got := closed.Evaluate(iampolicy.Request{Caller: caller, Action: "sts:AssumeRole", Resource: roleARN}); got.Verdict != iampolicy.Deny {
				t.Errorf("Deny of %s for %+v: %+v", principal, caller, got)
			}
		}
	}
	// Unless it says, as on AWS, that services are not meant.
	people := parse(t, iampolicy.Trust, `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"Service":"ec2.amazonaws.com","AWS":"*"}},`+
		`{"Effect":"Deny","Action":"sts:*","Principal":"*","Condition":{"Bool":{"aws:PrincipalIsAWSService":"false"}}}]}`)
	for _, c := range []struct {
		caller iampolicy.Caller
		want   iampolicy.Verdict
	}{{ec2, iampolicy.Allow}, {alice(t), iampolicy.Deny}} {
		got := people.Evaluate(iampolicy.Request{Caller: c.caller, Action: "sts:AssumeRole", Resource: roleARN, Context: iampolicy.NewContext(c.caller, iampolicy.Facts{})})
		if got.Verdict != c.want {
			t.Errorf("%+v: %+v, want %v", c.caller, got, c.want)
		}
	}
	if got := iampolicy.Assume(named, foreignAccount, iampolicy.Rights{}, r); got.Verdict != iampolicy.Neutral {
		t.Error("who is named by a role of another account needs no policy:", got)
	}
	if got := iampolicy.Assume(named, foreignAccount, iampolicy.Rights{Identity: may}, r); got.Verdict != iampolicy.Allow {
		t.Error("who is named by a role of another account and has a policy may not:", got)
	}
	if got := iampolicy.Assume(may[0], account, iampolicy.Rights{Identity: may}, r); got.Verdict != iampolicy.Neutral {
		t.Error("an identity policy served as a trust policy:", got)
	}
}

func TestBindAndShow(t *testing.T) {
	all := directory{aliceID, nodeID}
	for in, want := range map[string]string{
		`{"AWS":"arn:aws:iam::111122223333:user/alice"}`:             `{"AWS":"` + aliceID + `"}`,
		`{"AWS":"` + roleARN + `"}`:                                  `{"AWS":"` + nodeID + `"}`,
		`{"AWS":"arn:aws:sts::111122223333:assumed-role/node/i-1"}`:  `{"AWS":"` + nodeID + `:i-1"}`,
		`{"AWS":["111122223333","*"],"Service":"ec2.amazonaws.com"}`: `{"AWS":["arn:aws:iam::111122223333:root","*"],"Service":"ec2.amazonaws.com"}`,
		`{"AWS":"arn:aws:iam::111122223333:user/bob"}`:               "",
		`{"AWS":"arn:aws:iam::111122223333:role/node"}`:              "", // the path is another
		`{"AWS":"arn:aws:iam::999999999999:root"}`:                   "",
		`{"AWS":"AIDAZZZZZZZZZZZZZZZZZ"}`:                            "",
	} {
		written := parse(t, iampolicy.Trust, trustOf(in))
		bound, err := written.Bind(all)
		if want == "" {
			if malformed := (*iampolicy.Malformed)(nil); !errors.As(err, &malformed) || !strings.Contains(err.Error(), "Invalid principal in policy") {
				t.Errorf("%s is bound: %v", in, err)
			}
			continue
		}
		text, err2 := bound.Text()
		if err != nil || err2 != nil || !strings.Contains(text, want) || !bound.Bound() {
			t.Errorf("%s became %s, %v, %v", in, text, err, err2)
		}
		shown, err := bound.Shown(all).Text()
		before, err2 := written.Text()
		if err != nil || err2 != nil || shown != before {
			t.Errorf("%s is shown as %s, %v, %v", in, shown, err, err2)
		}
	}
	bound, err := parse(t, iampolicy.Trust, trustOf(`{"AWS":"arn:aws:iam::111122223333:user/alice"}`)).Bind(all)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := bound.Shown(directory{alice: "AIDACCCCCCCCCCCCCCCCC"}).Text(); err != nil || !strings.Contains(text, aliceID) {
		t.Error("a deleted user is shown as", text, err)
	}
}
