// SPDX-License-Identifier: Apache-2.0

package iampolicy_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/iampolicy"
)

const (
	account        = "111122223333"
	foreignAccount = "444455556666"
	aliceID        = "AIDAAAAAAAAAAAAAAAAAA"
	nodeID         = "AROAAAAAAAAAAAAAAAAAA"
	roleARN        = "arn:aws:iam::111122223333:role/app/node"
)

func must(t testing.TB, s string) arn.ARN {
	t.Helper()
	a, err := arn.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func alice(t testing.TB) iampolicy.Caller {
	t.Helper()
	return iampolicy.Caller{ARN: must(t, "arn:aws:iam::111122223333:user/alice"), Account: account, ID: aliceID}
}

func session(t testing.TB) iampolicy.Caller {
	t.Helper()
	return iampolicy.Caller{
		ARN: must(t, "arn:aws:sts::111122223333:assumed-role/node/i-1"), RoleARN: must(t, roleARN), Account: account, ID: nodeID, Session: "i-1",
	}
}

func parse(t testing.TB, k iampolicy.Kind, text string) iampolicy.Document {
	t.Helper()
	d, err := iampolicy.Parse(k, text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func statement(rest string) string { return `{"Version":"2012-10-17","Statement":{` + rest + `}}` }

func TestParseRefuses(t *testing.T) {
	const fine = `"Effect":"Allow","Action":"iam:*","Resource":"*"`
	const trust = `"Effect":"Allow","Action":"sts:AssumeRole"`
	for name, c := range map[string]struct {
		kind iampolicy.Kind
		text string
		path string // "" means that there is no error
	}{
		"a statement alone is fine":             {iampolicy.Managed, statement(fine), ""},
		"a list of statements is fine":          {iampolicy.Managed, `{"Statement":[{` + fine + `}]}`, ""},
		"what is no JSON":                       {iampolicy.Managed, `{`, "$"},
		"text behind the end":                   {iampolicy.Managed, statement(fine) + `{}`, "$"},
		"a list":                                {iampolicy.Managed, `[]`, "$"},
		"another version":                       {iampolicy.Managed, `{"Version":"2012-10-18","Statement":{` + fine + `}}`, "$.Version"},
		"no statement":                          {iampolicy.Managed, `{"Version":"2012-10-17"}`, "$"},
		"no statement in the list":              {iampolicy.Managed, `{"Statement":[]}`, "$"},
		"an unknown element":                    {iampolicy.Managed, `{"Statement":{` + fine + `},"Extra":1}`, "$.Extra"},
		"an unknown element of a statement":     {iampolicy.Managed, statement(fine + `,"action":"x"`), "$.Statement.action"},
		"an element that comes twice":           {iampolicy.Managed, statement(fine + `,"Effect":"Deny"`), "$.Statement"},
		"an effect in small letters":            {iampolicy.Managed, statement(`"Effect":"allow","Action":"*","Resource":"*"`), "$.Statement.Effect"},
		"no effect":                             {iampolicy.Managed, statement(`"Action":"*","Resource":"*"`), "$.Statement"},
		"no action":                             {iampolicy.Managed, statement(`"Effect":"Allow","Resource":"*"`), "$.Statement"},
		"Action and NotAction":                  {iampolicy.Managed, statement(fine + `,"NotAction":"*"`), "$.Statement"},
		"no resource":                           {iampolicy.Managed, statement(`"Effect":"Allow","Action":"*"`), "$.Statement"},
		"Resource and NotResource":              {iampolicy.Managed, statement(fine + `,"NotResource":"*"`), "$.Statement"},
		"an empty list of actions":              {iampolicy.Managed, statement(`"Effect":"Allow","Action":[],"Resource":"*"`), "$.Statement.Action"},
		"an action without a service":           {iampolicy.Managed, statement(`"Effect":"Allow","Action":["iam:*","GetUser"],"Resource":"*"`), "$.Statement.Action[1]"},
		"a wildcard in the service":             {iampolicy.Managed, statement(`"Effect":"Allow","Action":"i*:Get","Resource":"*"`), "$.Statement.Action"},
		"a resource that is no ARN":             {iampolicy.Managed, statement(`"Effect":"Allow","Action":"*","Resource":"user/*"`), "$.Statement.Resource"},
		"a variable of elsewhere is fine":       {iampolicy.Managed, statement(`"Effect":"Allow","Action":"*","Resource":"arn:aws:iam::*:user/${saml:sub}"`), ""},
		"a variable that names no service":      {iampolicy.Managed, statement(`"Effect":"Allow","Action":"*","Resource":"arn:aws:iam::*:user/${name}"`), "$.Statement.Resource"},
		"a default without quotes":              {iampolicy.Managed, statement(`"Effect":"Allow","Action":"*","Resource":"arn:aws:iam::*:user/${aws:username, x}"`), "$.Statement.Resource"},
		"a variable without its end":            {iampolicy.Managed, statement(`"Effect":"Allow","Action":"*","Resource":"arn:aws:iam::*:user/${aws"`), "$.Statement.Resource"},
		"a variable of many values":             {iampolicy.Managed, statement(`"Effect":"Allow","Action":"*","Resource":"arn:aws:iam::*:user/${aws:TagKeys}"`), "$.Statement.Resource"},
		"a variable in the old version is text": {iampolicy.Managed, `{"Version":"2008-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"arn:aws:iam::*:user/${aws:username}"}}`, ""},
		"a principal in an identity policy":     {iampolicy.Managed, statement(fine + `,"Principal":"*"`), "$.Statement.Principal"},
		"NotPrincipal":                          {iampolicy.Trust, statement(trust + `,"NotPrincipal":"*"`), "$.Statement.NotPrincipal"},
		"a trust policy without principal":      {iampolicy.Trust, statement(trust), "$.Statement"},
		"a trust policy with a resource":        {iampolicy.Trust, statement(trust + `,"Principal":"*","Resource":"*"`), "$.Statement.Resource"},
		"a trust policy with another action":    {iampolicy.Trust, statement(`"Effect":"Allow","Action":"iam:GetUser","Principal":"*"`), "$.Statement.Action"},
		"a trust policy with every action":      {iampolicy.Trust, statement(`"Effect":"Allow","Action":"*","Principal":"*"`), "$.Statement.Action"},
		"a principal of another kind":           {iampolicy.Trust, statement(trust + `,"Principal":{"CanonicalUser":"x"}`), "$.Statement.Principal.CanonicalUser"},
		"a principal with a wildcard":           {iampolicy.Trust, statement(trust + `,"Principal":{"AWS":"arn:aws:iam::111122223333:role/*"}`), "$.Statement.Principal.AWS"},
		"a principal that is a policy":          {iampolicy.Trust, statement(trust + `,"Principal":{"AWS":["111122223333","arn:aws:iam::111122223333:policy/x"]}`), "$.Statement.Principal.AWS[1]"},
		"a service elsewhere":                   {iampolicy.Trust, statement(trust + `,"Principal":{"Service":"ec2.example.com"}`), "$.Statement.Principal.Service"},
		"a federation that is no provider":      {iampolicy.Trust, statement(trust + `,"Principal":{"Federated":"arn:aws:iam::111122223333:role/x"}`), "$.Statement.Principal.Federated"},
		"an unknown operator":                   {iampolicy.Managed, statement(fine + `,"Condition":{"StringMatches":{"aws:username":"a"}}`), "$.Statement.Condition.StringMatches.aws:username"},
		"an operator in another case":           {iampolicy.Managed, statement(fine + `,"Condition":{"stringEquals":{"aws:username":"a"}}`), "$.Statement.Condition.stringEquals.aws:username"},
		"a key of elsewhere is fine":            {iampolicy.Managed, statement(fine + `,"Condition":{"Bool":{"kms:GrantIsForAWSResource":"true"},"NumericLessThan":{"s3:max-keys":"9"}}`), ""},
		"a key that names no service is fine":   {iampolicy.Managed, statement(fine + `,"Condition":{"StringEquals":{"PrincipalOrgID":"a"}}`), ""},
		"a key of nothing":                      {iampolicy.Managed, statement(fine + `,"Condition":{"StringEquals":{"":"a"}}`), "$.Statement.Condition.StringEquals."},
		"a key with half a service":             {iampolicy.Managed, statement(fine + `,"Condition":{"StringEquals":{":x":"a"}}`), "$.Statement.Condition.StringEquals.:x"},
		"a dash in an action is fine":           {iampolicy.Managed, statement(`"Effect":"Allow","Action":"execute-api:Get-*","Resource":"*"`), ""},
		"another sign in an action":             {iampolicy.Managed, statement(`"Effect":"Allow","Action":"iam:Get_User","Resource":"*"`), "$.Statement.Action"},
		"a very long key":                       {iampolicy.Managed, statement(fine + `,"Condition":{"StringEquals":{"aws:` + strings.Repeat("x", 600) + `":"a"}}`), "$.Statement.Condition.StringEquals.aws:" + strings.Repeat("x", 600)},
		"bytes that are no base64":              {iampolicy.Managed, statement(fine + `,"Condition":{"BinaryEquals":{"a:b":"%"}}`), "$.Statement.Condition.BinaryEquals.a:b"},
		"a key twice in two cases":              {iampolicy.Managed, statement(fine + `,"Condition":{"StringEquals":{"aws:username":"a","aws:UserName":"b"}}`), "$.Statement.Condition.StringEquals.aws:UserName"},
		"Null with IfExists":                    {iampolicy.Managed, statement(fine + `,"Condition":{"NullIfExists":{"aws:username":"true"}}`), "$.Statement.Condition.NullIfExists.aws:username"},
		"an operator of another type":           {iampolicy.Managed, statement(fine + `,"Condition":{"Bool":{"aws:SourceIp":"true"}}`), "$.Statement.Condition.Bool.aws:SourceIp"},
		"many values without a set operator":    {iampolicy.Managed, statement(fine + `,"Condition":{"StringEquals":{"aws:TagKeys":"a"}}`), ""},
		"a condition without a value":           {iampolicy.Managed, statement(fine + `,"Condition":{"StringEquals":{"aws:username":[]}}`), "$.Statement.Condition.StringEquals.aws:username"},
		"an operator without a key is fine":     {iampolicy.Managed, statement(fine + `,"Condition":{"ForAnyValue:StringEqualsIfExists":{}}`), ""},
		"an unknown operator without a key":     {iampolicy.Managed, statement(fine + `,"Condition":{"StringMatches":{}}`), "$.Statement.Condition.StringMatches"},
		"an address with bits behind its end":   {iampolicy.Managed, statement(fine + `,"Condition":{"IpAddress":{"aws:SourceIp":["10.0.0.0/8","10.0.0.1/8"]}}`), "$.Statement.Condition.IpAddress.aws:SourceIp[1]"},
		"IPv4 written as a range of IPv6":       {iampolicy.Managed, statement(fine + `,"Condition":{"IpAddress":{"aws:SourceIp":"::ffff:10.0.0.0/104"}}`), "$.Statement.Condition.IpAddress.aws:SourceIp"},
		"a date that is none":                   {iampolicy.Managed, statement(fine + `,"Condition":{"DateLessThan":{"aws:CurrentTime":"soon"}}`), "$.Statement.Condition.DateLessThan.aws:CurrentTime"},
		"a number that is none":                 {iampolicy.Managed, statement(fine + `,"Condition":{"NumericLessThan":{"aws:EpochTime":"1e999999999"}}`), "$.Statement.Condition.NumericLessThan.aws:EpochTime"},
		"two statements of one Sid":             {iampolicy.Managed, `{"Statement":[{"Sid":"a",` + fine + `},{"Sid":"a",` + fine + `}]}`, "$.Statement[1]"},
		"a Sid with a space":                    {iampolicy.Managed, statement(`"Sid":"a b",` + fine), "$.Statement.Sid"},
		"a character outside Latin 1":           {iampolicy.Managed, statement(fine + `,"Sid":"ł"`), "$"},
		"a character outside Latin 1, escaped":  {iampolicy.Managed, statement(fine + `,"Sid":"\u0142"`), "$.Statement.Sid"},
		"depth":                                 {iampolicy.Managed, strings.Repeat("[", 100), "$[0][0][0][0][0][0][0][0]"},
		"a large managed policy":                {iampolicy.Managed, statement(fine) + strings.Repeat("x", 6144), "$"},
		"white space does not count":            {iampolicy.Managed, statement(fine) + strings.Repeat(" ", 6144), ""},
		"a large trust policy":                  {iampolicy.Trust, strings.Repeat("x", 2049), "$"},
		"white space counts in session policy":  {iampolicy.Session, statement(fine) + strings.Repeat(" ", 2048), "$"},
		"no kind":                               {0, statement(fine), "$"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := iampolicy.Parse(c.kind, c.text)
			malformed := (*iampolicy.Malformed)(nil)
			if c.path == "" && err != nil || c.path != "" && (!errors.As(err, &malformed) || malformed.Path != c.path) {
				t.Fatalf("got %v, want an error at %q", err, c.path)
			}
		})
	}
}

func TestStatements(t *testing.T) {
	for name, c := range map[string]struct {
		body, action, resource string
		want                   iampolicy.Verdict
	}{
		"an action is compared without case":      {`"Effect":"Allow","Action":"IAM:getuser","Resource":"*"`, "iam:GetUser", "*", iampolicy.Allow},
		"the name alone in any case":              {`"Effect":"Allow","Action":"iam:getuser","Resource":"*"`, "iam:GetUser", "*", iampolicy.Allow},
		"a star in an action":                     {`"Effect":"Allow","Action":"iam:Get*r","Resource":"*"`, "iam:GetUser", "*", iampolicy.Allow},
		"a question mark is one character":        {`"Effect":"Allow","Action":"iam:GetUse?","Resource":"*"`, "iam:GetUse", "*", iampolicy.Neutral},
		"another service":                         {`"Effect":"Allow","Action":"iam:*","Resource":"*"`, "sts:AssumeRole", "*", iampolicy.Neutral},
		"a dash is a character":                   {`"Effect":"Allow","Action":"iam:Get-*","Resource":"*"`, "iam:GetUser", "*", iampolicy.Neutral},
		"an operator without a key":               {`"Effect":"Allow","Action":"*","Resource":"*","Condition":{"StringEquals":{}}`, "iam:GetUser", "*", iampolicy.Allow},
		"a key without a service is in none":      {`"Effect":"Allow","Action":"*","Resource":"*","Condition":{"StringEquals":{"username":"alice"}}`, "iam:GetUser", "*", iampolicy.Neutral},
		"NotAction allows the rest":               {`"Effect":"Allow","NotAction":"iam:*","Resource":"*"`, "sts:AssumeRole", "*", iampolicy.Allow},
		"NotAction leaves out":                    {`"Effect":"Allow","NotAction":"iam:*","Resource":"*"`, "iam:GetUser", "*", iampolicy.Neutral},
		"a resource":                              {`"Effect":"Allow","Action":"*","Resource":"arn:aws:iam::*:user/a*"`, "iam:GetUser", "arn:aws:iam::111122223333:user/alice", iampolicy.Allow},
		"a resource is compared with case":        {`"Effect":"Allow","Action":"*","Resource":"arn:aws:iam::*:user/A*"`, "iam:GetUser", "arn:aws:iam::111122223333:user/alice", iampolicy.Neutral},
		"a star does not cross a colon":           {`"Effect":"Allow","Action":"*","Resource":"arn:aws:*:user/alice:x:y"`, "iam:GetUser", "arn:aws:iam::111122223333:user/alice", iampolicy.Neutral},
		"one's own user":                          {`"Effect":"Allow","Action":"*","Resource":"arn:aws:iam::*:user/${aws:username}"`, "iam:GetUser", "arn:aws:iam::111122223333:user/alice", iampolicy.Allow},
		"one's own user is not another":           {`"Effect":"Allow","Action":"*","Resource":"arn:aws:iam::*:user/${aws:username}"`, "iam:GetUser", "arn:aws:iam::111122223333:user/bob", iampolicy.Neutral},
		"a star as itself":                        {`"Effect":"Allow","Action":"*","Resource":"arn:aws:iam::*:user/${*}"`, "iam:GetUser", "arn:aws:iam::111122223333:user/bob", iampolicy.Neutral},
		"NotResource leaves out":                  {`"Effect":"Deny","Action":"*","NotResource":"arn:aws:iam::*:user/${aws:username}"`, "iam:GetUser", "arn:aws:iam::111122223333:user/alice", iampolicy.Neutral},
		"NotResource takes the rest":              {`"Effect":"Deny","Action":"*","NotResource":"arn:aws:iam::*:user/${aws:username}"`, "iam:GetUser", "arn:aws:iam::111122223333:user/bob", iampolicy.Deny},
		"no resource is only everything":          {`"Effect":"Allow","Action":"*","Resource":"arn:aws:iam::*:*"`, "iam:ListUsers", "*", iampolicy.Neutral},
		"an allow without value for the variable": {`"Effect":"Allow","Action":"*","NotResource":"arn:aws:iam::*:user/${aws:PrincipalTag/x}"`, "iam:GetUser", "arn:aws:iam::111122223333:user/bob", iampolicy.Neutral},
		"a deny without value for the variable":   {`"Effect":"Deny","Action":"*","NotResource":"arn:aws:iam::*:user/${aws:PrincipalTag/x}"`, "iam:GetUser", "arn:aws:iam::111122223333:user/bob", iampolicy.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := iampolicy.Parse(iampolicy.Managed, statement(c.body))
			if err != nil {
				t.Fatal(err)
			}
			r := iampolicy.Request{Caller: alice(t), Action: c.action, Resource: c.resource, Context: iampolicy.NewContext(alice(t), iampolicy.Facts{})}
			if got := d.Evaluate(r); got.Verdict != c.want {
				t.Errorf("got %+v, want %v", got, c.want)
			}
		})
	}
	r := iampolicy.Request{Action: "iam:GetUser", Resource: "*"}
	allow := iampolicy.Named{Name: "a", Document: parse(t, iampolicy.Managed, statement(`"Effect":"Allow","Action":"*","Resource":"*"`))}
	deny := iampolicy.Named{Name: "d", Document: parse(t, iampolicy.Managed, statement(`"Sid":"no","Effect":"Deny","Action":"iam:*","Resource":"*"`))}
	nothing := iampolicy.Named{Name: "n", Document: parse(t, iampolicy.Managed, statement(`"Effect":"Allow","Action":"sts:*","Resource":"*"`))}
	for name, c := range map[string]struct {
		rights iampolicy.Rights
		want   iampolicy.Verdict
	}{
		"nothing is no":                          {iampolicy.Rights{}, iampolicy.Neutral},
		"an allow is yes":                        {iampolicy.Rights{Identity: []iampolicy.Named{allow}}, iampolicy.Allow},
		"a deny behind an allow is no":           {iampolicy.Rights{Identity: []iampolicy.Named{allow, deny}}, iampolicy.Deny},
		"a deny before an allow is no":           {iampolicy.Rights{Identity: []iampolicy.Named{deny, allow}}, iampolicy.Deny},
		"an empty session policy allows nothing": {iampolicy.Rights{Identity: []iampolicy.Named{allow}, Scoped: true}, iampolicy.Neutral},
		"a session policy alone allows nothing":  {iampolicy.Rights{Session: []iampolicy.Named{allow}, Scoped: true}, iampolicy.Neutral},
		"both together allow":                    {iampolicy.Rights{Identity: []iampolicy.Named{allow}, Session: []iampolicy.Named{allow}, Scoped: true}, iampolicy.Allow},
		"a session policy denies":                {iampolicy.Rights{Identity: []iampolicy.Named{allow}, Session: []iampolicy.Named{allow, deny}, Scoped: true}, iampolicy.Deny},
		"a boundary alone allows nothing":        {iampolicy.Rights{Boundary: &allow}, iampolicy.Neutral},
		"both allow":                             {iampolicy.Rights{Identity: []iampolicy.Named{allow}, Boundary: &allow}, iampolicy.Allow},
		"a boundary that does not allow":         {iampolicy.Rights{Identity: []iampolicy.Named{allow}, Boundary: &nothing}, iampolicy.Neutral},
		"a boundary denies":                      {iampolicy.Rights{Identity: []iampolicy.Named{allow}, Boundary: &deny}, iampolicy.Deny},
		"all three":                              {iampolicy.Rights{Identity: []iampolicy.Named{allow}, Boundary: &allow, Session: []iampolicy.Named{allow}, Scoped: true}, iampolicy.Allow},
		"a session does not widen a boundary":    {iampolicy.Rights{Identity: []iampolicy.Named{allow}, Boundary: &nothing, Session: []iampolicy.Named{allow}, Scoped: true}, iampolicy.Neutral},
		"a session's deny is told first":         {iampolicy.Rights{Boundary: &nothing, Session: []iampolicy.Named{deny}, Scoped: true}, iampolicy.Deny},
		"root may":                               {iampolicy.Rights{Root: true}, iampolicy.Allow},
	} {
		if got := c.rights.Decide(r); got.Verdict != c.want || c.want == iampolicy.Deny && (got.Policy != "d" || got.SID != "no" || got.Statement != 1) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestConditions(t *testing.T) {
	context := iampolicy.NewContext(session(t), iampolicy.Facts{
		Now: time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC), SourceIP: netip.MustParseAddr("::ffff:10.1.2.3"), Secure: true, UserAgent: "aws*",
		TokenIssued: time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC), Tags: map[string]string{"Team": "red"},
	})
	context["aws:TagKeys"] = []string{"a", "b"}
	context["sts:DurationSeconds"] = []string{"many"}
	context["x:bytes"], context["x:yes"], context["x:one"] = []string{"QUJD"}, []string{"TRUE"}, []string{"a"}
	for in, want := range map[string]bool{
		`"StringEquals":{"aws:PrincipalTag/team":"red"}`: true, `"StringEquals":{"aws:PrincipalTag/team":"Red"}`: false,
		`"StringEquals":{"aws:PrincipalTag/team":["x","red"]}`: true, `"StringEquals":{"aws:PrincipalTag/team":"r*"}`: false,
		`"StringNotEquals":{"aws:PrincipalTag/team":["x","red"]}`: false, `"StringNotEquals":{"aws:PrincipalTag/team":["x","y"]}`: true,
		`"StringEqualsIgnoreCase":{"aws:PrincipalTag/team":"RED"}`: true, `"StringNotEqualsIgnoreCase":{"aws:PrincipalTag/team":"RED"}`: false,
		`"StringLike":{"aws:PrincipalTag/team":"r*"}`: true, `"StringLike":{"aws:PrincipalTag/team":"r?"}`: false, `"StringNotLike":{"aws:PrincipalTag/team":"r*"}`: false,
		`"StringLike":{"aws:PrincipalTag/team":"${aws:UserAgent}"}`: false, `"StringLike":{"aws:UserAgent":"${aws:UserAgent}"}`: true, `"StringEquals":{"aws:UserAgent":"aws${*}"}`: true,
		`"StringEquals":{"aws:username":"a"}`: false, `"StringEqualsIfExists":{"aws:username":"a"}`: true, `"StringNotEquals":{"aws:username":"a"}`: true,
		`"StringNotEquals":{"aws:UserAgent":"${aws:username}"}`: false, `"StringEquals":{"aws:userid":"` + nodeID + `:i-1"}`: true,
		`"Null":{"aws:username":"true"}`: true, `"Null":{"aws:username":"false"}`: false, `"Null":{"aws:userid":false}`: true,
		`"ArnLike":{"aws:PrincipalArn":"arn:aws:iam::*:role/app/*"}`: true, `"ArnEquals":{"aws:PrincipalArn":"` + roleARN + `"}`: true, `"ArnNotLike":{"aws:PrincipalArn":"arn:aws:iam::*:role/app/*"}`: false,
		`"ArnLike":{"aws:PrincipalArn":"arn:aws:*::*:user/*"}`: false, `"Bool":{"aws:SecureTransport":true}`: true, `"Bool":{"aws:SecureTransport":"false"}`: false,
		`"Bool":{"aws:MultiFactorAuthPresent":"false"}`: true, `"IpAddress":{"aws:SourceIp":"10.0.0.0/8"}`: true, `"IpAddress":{"aws:SourceIp":["11.0.0.0/8","10.1.2.3"]}`: true,
		`"IpAddress":{"aws:SourceIp":"::ffff:10.1.2.3"}`: true, `"IpAddress":{"aws:SourceIp":"::/0"}`: false, `"NotIpAddress":{"aws:SourceIp":"10.0.0.0/8"}`: false,
		`"DateLessThan":{"aws:CurrentTime":"2026-11-21T14:00:00Z"}`: false, `"DateLessThanEquals":{"aws:CurrentTime":"2026-11-21T14:00:00Z"}`: true,
		`"DateGreaterThan":{"aws:CurrentTime":"2026-11-21"}`: true, `"DateGreaterThanEquals":{"aws:TokenIssueTime":"2026-11-21T13:00:01Z"}`: false, `"DateEquals":{"aws:CurrentTime":"2026-11-21T15:00:00+01:00"}`: true,
		`"DateNotEquals":{"aws:CurrentTime":"2026-11-21T15:00:00+01:00"}`: false, `"DateGreaterThan":{"aws:EpochTime":1700000000}`: true,
		`"NumericGreaterThan":{"aws:EpochTime":"1700000000.5"}`: true, `"NumericLessThanEquals":{"aws:EpochTime":"1700000000"}`: false, `"NumericNotEquals":{"aws:EpochTime":"1"}`: true,
		`"NumericLessThan":{"sts:DurationSeconds":"1"}`: false, `"NumericNotEquals":{"sts:DurationSeconds":"1"}`: false,
		`"ForAllValues:StringEquals":{"aws:TagKeys":["a","b","c"]}`: true, `"ForAllValues:StringEquals":{"aws:TagKeys":["a"]}`: false, `"ForAnyValue:StringEquals":{"aws:TagKeys":["b","x"]}`: true,
		`"ForAnyValue:StringEquals":{"aws:TagKeys":"x"}`: false, `"ForAllValues:StringNotEquals":{"aws:TagKeys":"a"}`: false, `"ForAnyValue:StringNotEquals":{"aws:TagKeys":"a"}`: true,
		`"ForAllValues:StringEquals":{"aws:RequestTag/x":"a"}`: true, `"ForAnyValue:StringEquals":{"aws:RequestTag/x":"a"}`: false, `"ForAnyValue:StringEqualsIfExists":{"aws:RequestTag/x":"a"}`: true,
		`"ForAnyValue:StringNotEquals":{"aws:RequestTag/x":"a"}`: false,
		// Keys that no request carries are absent.
		`"StringEquals":{"ec2:ResourceTag/x":"a"}`: false, `"StringLikeIfExists":{"ec2:ResourceTag/x":"a"}`: true, `"StringNotEquals":{"aws:PrincipalOrgID":"o"}`: true,
		`"ArnLike":{"aws:SourceArn":"arn:aws:*:*:*:*"}`: false, `"ArnNotLike":{"aws:SourceArn":"arn:aws:s3:::x"}`: true, `"Bool":{"kms:GrantIsForAWSResource":true}`: false,
		`"NumericLessThanIfExists":{"s3:max-keys":9}`: true, `"NotIpAddress":{"aws:VpcSourceIp":"10.0.0.0/8"}`: true, `"DateGreaterThan":{"a:when":"2020-01-01"}`: false,
		`"ForAllValues:StringEquals":{"kms:EncryptionContextKeys":"a"}`: true, `"ForAnyValue:StringEquals":{"kms:EncryptionContextKeys":"a"}`: false,
		`"Null":{"aws:MultiFactorAuthAge":true}`: true, `"Null":{"aws:MultiFactorAuthAge":"False"}`: false, `"BinaryEquals":{"a:bytes":"QUJD"}`: false,
		// Condition keys that a service gives are compared as the operator says.
		`"BinaryEquals":{"x:bytes":["AAAA","QUJD"]}`: true, `"BinaryEqualsIfExists":{"x:bytes":"AAAA"}`: false, `"Bool":{"x:yes":"True"}`: true,
		`"StringEquals":{"aws:PrincipalTag/team":"${aws:PrincipalTag/other, 'red'}"}`: true, `"StringEqualsIgnoreCase":{"aws:PrincipalTag/team":"${a:b,'RED'}"}`: true,
		`"StringEquals":{"aws:PrincipalTag/team":"${aws:PrincipalTag/Team, 'blue'}"}`: true, `"StringEquals":{"aws:PrincipalTag/team":"${a:b}"}`: false,
		// One value is compared without a set operator; of two nobody can tell.
		`"StringEquals":{"x:one":"a"}`: true, `"StringEquals":{"aws:TagKeys":"a"}`: false, `"StringNotEquals":{"aws:TagKeys":"z"}`: false,
		`"Bool":{"aws:SecureTransport":"true"},"StringEquals":{"aws:PrincipalTag/team":"blue"}`:                                      false,
		`"StringEquals":{"aws:PrincipalTag/team":"red","aws:PrincipalAccount":"1"}`:                                                  false,
		`"StringEquals":{"aws:PrincipalTag/team":"red","aws:PrincipalAccount":"111122223333"},"Bool":{"aws:SecureTransport":"true"}`: true,
	} {
		t.Run(in, func(t *testing.T) {
			d := parse(t, iampolicy.Managed, statement(`"Effect":"Allow","Action":"*","Resource":"*","Condition":{`+in+`}`))
			r := iampolicy.Request{Caller: session(t), Action: "iam:GetUser", Resource: "*", Context: context}
			if got := d.Evaluate(r); (got.Verdict == iampolicy.Allow) != want {
				t.Errorf("%+v", got)
			}
			deny := parse(t, iampolicy.Managed, statement(`"Effect":"Deny","Action":"*","Resource":"*","Condition":{`+in+`}`))
			unclear := strings.Contains(in, "sts:DurationSeconds") || strings.Contains(in, "NotEquals\":{\"aws:UserAgent") ||
				strings.HasPrefix(in, "\"String") && strings.Contains(in, "aws:TagKeys")
			if got := deny.Evaluate(r); (got.Verdict == iampolicy.Deny) != (want || unclear) {
				t.Errorf("a Deny whose condition is %v: %+v", want, got)
			}
		})
	}
}

// FuzzParse holds that nothing panics, that what is read is written and read again as the same, and that no Allow comes
// of a Deny document.
func FuzzParse(f *testing.F) {
	f.Add(1, statement(`"Effect":"Allow","Action":["iam:Get*"],"Resource":"arn:aws:iam::*:user/${aws:username}","Condition":{"ForAllValues:StringLike":{"aws:TagKeys":["a*"]}}`))
	f.Add(5, trustOf(`{"AWS":["111122223333","*","AIDAAAAAAAAAAAAAAAAAA","arn:aws:sts::111122223333:assumed-role/a/bc"],"Service":"ec2.amazonaws.com"}`))
	f.Add(2, statement(`"Effect":"Deny","NotAction":"*","NotResource":"*","Condition":{"Null":{"aws:username":true},"IpAddress":{"aws:SourceIp":"::1"}}`))
	f.Add(6, statement(`"Effect":"Allow","Action":"sqs:*","Resource":"*","Principal":{"Service":["events.amazonaws.com"]},"Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:events:*:*:rule/*"}}`))
	f.Add(3, `{"Statement":[{"Sid":"a","Effect":"Deny","Action":"a:b","Resource":"arn:aws:a:$:${$}:${*}:"}]}`)
	for _, p := range iampolicy.AWSManaged() {
		text, _ := p.Document()
		f.Add(1, text)
	}
	f.Fuzz(func(t *testing.T, kind int, text string) {
		d, err := iampolicy.Parse(iampolicy.Kind(kind), text)
		if err != nil {
			if malformed := (*iampolicy.Malformed)(nil); !errors.As(err, &malformed) {
				t.Fatal(err)
			}
			return
		}
		again, err := d.Text()
		if err != nil {
			t.Fatal(err)
		}
		r := iampolicy.Request{Caller: alice(t), Action: "iam:GetUser", Resource: "arn:aws:iam::111122223333:user/alice", Context: iampolicy.NewContext(alice(t), iampolicy.Facts{})}
		first := d.Evaluate(r)
		if iampolicy.Size(iampolicy.Kind(kind), again) <= 2048 {
			second := parse(t, iampolicy.Kind(kind), again)
			if twice, err := second.Text(); err != nil || twice != again {
				t.Fatalf("%s became %s, %v", again, twice, err)
			}
			if got := second.Evaluate(r); got.Verdict != first.Verdict {
				t.Fatalf("%s: %v, again %v", text, first, got)
			}
		}
		if first.Verdict == iampolicy.Allow && !strings.Contains(fmt.Sprint(d.Statements), "Allow") {
			t.Fatal("an Allow from nowhere")
		}
	})
}
