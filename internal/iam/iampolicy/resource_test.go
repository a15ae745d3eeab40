// SPDX-License-Identifier: Apache-2.0

package iampolicy_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/iam/iampolicy"
)

const queueARN = "arn:aws:sqs:us-east-1:111122223333:jobs"

func ofQueue(t *testing.T, effect, principal, more string) iampolicy.Named {
	t.Helper()
	text := statement(`"Effect":"` + effect + `","Action":"sqs:SendMessage","Resource":"` + queueARN + `","Principal":` + principal + more)
	document, err := iampolicy.Parse(iampolicy.OfResource, text)
	if err != nil {
		t.Fatal(err)
	}
	if document, err = document.Bind(directory{aliceID, nodeID}); err != nil {
		t.Fatal(err)
	}
	return iampolicy.Named{Name: "queue", Document: document}
}

func TestWithResource(t *testing.T) {
	may := iampolicy.Rights{Identity: []iampolicy.Named{{Name: "may", Document: parse(t, iampolicy.Managed, statement(`"Effect":"Allow","Action":"sqs:*","Resource":"*"`))}}}
	mayNot := iampolicy.Rights{Identity: []iampolicy.Named{{Name: "not", Document: parse(t, iampolicy.Managed, statement(`"Effect":"Deny","Action":"sqs:*","Resource":"*"`))}}}
	bounded := iampolicy.Rights{Boundary: &iampolicy.Named{Name: "boundary", Document: parse(t, iampolicy.Managed, statement(`"Effect":"Allow","Action":"ec2:*","Resource":"*"`))}}
	foreign := iampolicy.Caller{ARN: must(t, "arn:aws:iam::444455556666:user/eve"), Account: foreignAccount, ID: "AIDABBBBBBBBBBBBBBBBB"}
	events := iampolicy.Caller{Service: "events.amazonaws.com"}
	const (
		byName    = `{"AWS":"arn:aws:iam::111122223333:user/alice"}`
		theRole   = `{"AWS":"arn:aws:iam::111122223333:role/app/node"}`
		own       = `{"AWS":"111122223333"}`
		others    = `{"AWS":"444455556666"}`
		services  = `{"Service":["events.amazonaws.com","sqs.amazonaws.com"]}`
		elsewhere = `,"Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:events:*:*:rule/other"}}`
	)
	for name, c := range map[string]struct {
		effect, principal, more string
		caller                  iampolicy.Caller
		rights                  iampolicy.Rights
		want                    iampolicy.Verdict
	}{
		"the caller's policy alone":              {"Allow", services, "", alice(t), may, iampolicy.Allow},
		"neither":                                {"Allow", services, "", alice(t), iampolicy.Rights{}, iampolicy.Neutral},
		"the queue's policy alone":               {"Allow", byName, "", alice(t), iampolicy.Rights{}, iampolicy.Allow},
		"the queue's, and the caller's denies":   {"Allow", byName, "", alice(t), mayNot, iampolicy.Deny},
		"the caller's, and the queue's denies":   {"Deny", byName, "", alice(t), may, iampolicy.Deny},
		"a deny for everybody":                   {"Deny", `"*"`, "", alice(t), may, iampolicy.Deny},
		"the account alone gives nothing":        {"Allow", own, "", alice(t), iampolicy.Rights{}, iampolicy.Neutral},
		"a user who is named is not bounded":     {"Allow", byName, "", alice(t), bounded, iampolicy.Allow},
		"anyone is bounded":                      {"Allow", `"*"`, "", alice(t), bounded, iampolicy.Neutral},
		"a session of a role that is named":      {"Allow", theRole, "", session(t), iampolicy.Rights{}, iampolicy.Allow},
		"another account needs both: neither":    {"Allow", byName, "", foreign, may, iampolicy.Neutral},
		"another account needs both: the queue":  {"Allow", others, "", foreign, iampolicy.Rights{}, iampolicy.Neutral},
		"another account with both":              {"Allow", others, "", foreign, may, iampolicy.Allow},
		"a service":                              {"Allow", services, "", events, iampolicy.Rights{}, iampolicy.Allow},
		"a service by the rights of people":      {"Allow", byName, "", events, may, iampolicy.Neutral},
		"a service that anyone does not mean":    {"Allow", `"*"`, "", events, iampolicy.Rights{}, iampolicy.Neutral},
		"a service, and a deny for everybody":    {"Deny", `"*"`, "", events, iampolicy.Rights{}, iampolicy.Deny},
		"a service for another rule":             {"Allow", services, elsewhere, events, iampolicy.Rights{}, iampolicy.Neutral},
		"the root may without the queue's":       {"Allow", services, "", alice(t), iampolicy.Rights{Root: true}, iampolicy.Allow},
		"the root may not what the queue denies": {"Deny", `"*"`, "", alice(t), iampolicy.Rights{Root: true}, iampolicy.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			request := iampolicy.Request{Caller: c.caller, Action: "sqs:SendMessage", Resource: queueARN, Context: map[string][]string{"aws:SourceArn": {"arn:aws:events:us-east-1:111122223333:rule/spot"}}}
			if d := iampolicy.WithResource(ofQueue(t, c.effect, c.principal, c.more), account, c.rights, request); d.Verdict != c.want {
				t.Errorf("%+v, want %v", d, c.want)
			}
			request.Resource += "x"
			if d := iampolicy.WithResource(ofQueue(t, "Allow", c.principal, ""), account, iampolicy.Rights{}, request); d.Verdict == iampolicy.Allow {
				t.Errorf("of another queue: %+v", d)
			}
		})
	}
	other := iampolicy.Named{Name: "other", Document: parse(t, iampolicy.Managed, statement(`"Effect":"Allow","Action":"*","Resource":"*"`))}
	if d := iampolicy.WithResource(other, account, may, iampolicy.Request{Caller: alice(t), Action: "sqs:SendMessage", Resource: queueARN}); d.Verdict == iampolicy.Allow {
		t.Errorf("a policy of another kind: %+v", d)
	}
}

func TestParseOfResource(t *testing.T) {
	for text, says := range map[string]string{
		statement(`"Effect":"Allow","Action":"sqs:*","Resource":"*"`):                                                          "needs Principal",
		statement(`"Effect":"Allow","Action":"sqs:*","Principal":"*"`):                                                         "Resource",
		statement(`"Effect":"Allow","Action":"sqs:*","Resource":"*","NotPrincipal":"*"`):                                       "NotPrincipal",
		statement(`"Effect":"Allow","Action":"sqs:*","Resource":"*","Principal":{"Service":"nobody"}`):                         "ec2.amazonaws.com",
		statement(`"Effect":"Allow","Action":"sqs:*","Resource":"*","Principal":{"AWS":"` + strings.Repeat("x", 30000) + `"}`): "20480",
	} {
		if _, err := iampolicy.Parse(iampolicy.OfResource, text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.200s: %v, want %q", text, err, says)
		}
	}
}

// Of two tags whose keys differ in capitals alone nobody can say which one a condition is about: it allows nothing, and denies.
func TestKeysThatDifferInCapitals(t *testing.T) {
	const team = `"Action":"ec2:CreateTags","Resource":"*","Condition":{"%s":{"aws:RequestTag/team":"mine"}}`
	document := func(effect, operator string) iampolicy.Document {
		return parse(t, iampolicy.Managed, statement(`"Effect":"`+effect+`",`+strings.Replace(team, "%s", operator, 1)))
	}
	both := map[string][]string{"aws:RequestTag/team": {"other"}, "aws:RequestTag/TEAM": {"mine"}}
	for range 100 { // a map has no order
		for effect, operator := range map[string]string{"Allow": "StringEquals", "Deny": "StringNotEquals"} {
			d := document(effect, operator).Evaluate(iampolicy.Request{Caller: alice(t), Action: "ec2:CreateTags", Resource: "*", Context: both})
			if effect == "Allow" && d.Verdict != iampolicy.Neutral || effect == "Deny" && d.Verdict != iampolicy.Deny {
				t.Fatalf("%s %s: %+v", effect, operator, d)
			}
		}
	}
	same := map[string][]string{"aws:RequestTag/team": {"mine"}, "aws:RequestTag/Team": {"mine"}}
	if d := document("Allow", "StringEquals").Evaluate(iampolicy.Request{Caller: alice(t), Action: "ec2:CreateTags", Resource: "*", Context: same}); d.Verdict != iampolicy.Allow {
		t.Errorf("of one value: %+v", d)
	}
}

// Everybody is written as it was read: Terraform waits until the policy of a queue is the one that it has set.
func TestEverybodyIsWrittenAsItWasRead(t *testing.T) {
	for _, principal := range []string{`"*"`, `{"AWS":"*"}`, `{"AWS":["*","111122223333"]}`} {
		text := statement(`"Effect":"Deny","Principal":` + principal + `,"Action":"sqs:*","Resource":"arn:aws:sqs:us-east-1:000000000000:jobs"`)
		written, err := parse(t, iampolicy.OfResource, text).Text()
		if want := strings.Replace(principal, "111122223333", "arn:aws:iam::111122223333:root", 1); err != nil || !strings.Contains(written, `"Principal":`+want) {
			t.Errorf("%s is written as %s, %v", principal, written, err)
		}
	}
}
