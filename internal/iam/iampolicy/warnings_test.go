// SPDX-License-Identifier: Apache-2.0

package iampolicy_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/iam/iampolicy"
)

func TestWarnings(t *testing.T) {
	const here = `"Effect":"Allow","Action":"iam:*","Resource":"*","Condition":`
	for name, c := range map[string]struct {
		kind iampolicy.Kind
		text string
		want []string // the beginning of each
	}{
		"nothing to say":   {iampolicy.Managed, statement(here + `{"StringEquals":{"aws:PrincipalTag/a":"${aws:username}"},"IpAddress":{"aws:SourceIp":"10.0.0.0/8"}}`), nil},
		"a key of another": {iampolicy.Managed, statement(here + `{"StringEquals":{"ec2:Region":"x"}}`), []string{"$.Statement[0].Condition.StringEquals.ec2:Region: no request to IAM or STS carries the key ec2:Region here, so that this condition never holds"}},
		"a negated operator": {iampolicy.Managed, statement(here + `{"StringNotEquals":{"aws:PrincipalOrgID":"o"}}`), []string{
			"$.Statement[0].Condition.StringNotEquals.aws:PrincipalOrgID: no request to IAM or STS carries the key aws:PrincipalOrgID here, so that this condition always holds",
		}},
		"a set operator":         {iampolicy.Managed, statement(here + `{"ForAllValues:StringEquals":{"a:b":"o"},"Null":{"a:c":"false"}}`), []string{"$.Statement[0].Condition.ForAllValues:StringEquals.a:b: no request to IAM or STS carries the key a:b here, so that this condition always", "$.Statement[0].Condition.Null.a:c: no request to IAM or STS carries the key a:c here, so that this condition never"}},
		"statements elsewhere":   {iampolicy.Managed, statement(`"Effect":"Allow","Action":["ec2:*","s3:*"],"Resource":"*","Condition":{"StringEquals":{"ec2:Region":"x"}}`), nil},
		"an action of many":      {iampolicy.Managed, statement(`"Effect":"Allow","Action":["ec2:*","*"],"Resource":"*","Condition":{"StringEquals":{"ec2:Region":"x"}}`), []string{"$.Statement[0].Condition.StringEquals.ec2:Region: "}},
		"what is left out":       {iampolicy.Managed, statement(`"Effect":"Allow","NotAction":"ec2:*","Resource":"*","Condition":{"StringEquals":{"ec2:Region":"x"}}`), []string{"$.Statement[0].Condition.StringEquals.ec2:Region: "}},
		"a source in a trust":    {iampolicy.Trust, trustOf(`{"Service":"ec2.amazonaws.com"},"Condition":{"StringEquals":{"aws:SourceAccount":"111122223333"}}`), []string{"$.Statement[0].Condition.StringEquals.aws:SourceAccount: "}},
		"a source of pods' EKS":  {iampolicy.Trust, trustOf(`{"Service":"pods.eks.amazonaws.com"},"Condition":{"StringEquals":{"aws:SourceAccount":"111122223333"},"ArnLike":{"aws:SourceArn":"arn:aws:eks:*:*:cluster/*"}}`), nil},
		"a variable":             {iampolicy.Managed, statement(`"Effect":"Allow","Action":"iam:*","Resource":"arn:aws:iam::*:user/${saml:sub}"`), []string{"$.Statement[0].Resource: no request to IAM or STS carries the variable ${saml:sub} here, so that the text fits nothing"}},
		"a variable's default":   {iampolicy.Managed, statement(`"Effect":"Allow","Action":"iam:*","Resource":"arn:aws:iam::*:user/${saml:sub, 'x'}"`), nil},
		"the old version":        {iampolicy.Managed, `{"Statement":{"Effect":"Allow","Action":"iam:*","Resource":"arn:aws:iam::*:user/${aws:username}"}}`, []string{`$.Statement[0].Resource: ${ is text like any other without "Version": "2012-10-17"`}},
		"many values of one key": {iampolicy.Managed, statement(here + `{"StringEquals":{"aws:TagKeys":"a"}}`), []string{"$.Statement[0].Condition.StringEquals.aws:TagKeys: this key may have many values"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := parse(t, c.kind, c.text).Warnings()
			if len(got) != len(c.want) {
				t.Fatalf("%v, want %q", got, c.want)
			}
			for i, w := range got {
				if !strings.HasPrefix(w.String(), c.want[i]) {
					t.Errorf("%s, want %s", w, c.want[i])
				}
			}
		})
	}
}

// A document without a Version is of 2008, in which ${ is text: what has a variable for its reader fits nobody.
func TestWithoutAVersion(t *testing.T) {
	const body = `{"Effect":"Allow","Action":"*","Resource":"arn:aws:iam::*:user/${aws:username}"}`
	for version, want := range map[string]iampolicy.Verdict{"": iampolicy.Neutral, `"Version":"2008-10-17",`: iampolicy.Neutral, `"Version":"2012-10-17",`: iampolicy.Allow} {
		d := parse(t, iampolicy.Managed, `{`+version+`"Statement":`+body+`}`)
		r := iampolicy.Request{Caller: alice(t), Action: "iam:GetUser", Resource: "arn:aws:iam::111122223333:user/alice", Context: iampolicy.NewContext(alice(t), iampolicy.Facts{})}
		if got := d.Evaluate(r); got.Verdict != want {
			t.Errorf("with %q: %+v", version, got)
		}
		r.Resource = "arn:aws:iam::111122223333:user/${aws:username}"
		if got := d.Evaluate(r); (got.Verdict == iampolicy.Allow) == (want == iampolicy.Allow) {
			t.Errorf("with %q the text itself: %+v", version, got)
		}
	}
}
