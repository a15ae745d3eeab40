// SPDX-License-Identifier: Apache-2.0

package iampolicy_test

import (
	"fmt"

	"muster.dev/muster/internal/iam/iampolicy"
)

// An explicit Deny wins over every Allow, and what no statement is about is not allowed.
func ExampleDocument_Evaluate() {
	document, err := iampolicy.Parse(iampolicy.Managed, `{
		"Version": "2012-10-17",
		"Statement": [
			{"Sid": "Roles", "Effect": "Allow", "Action": "iam:*Role", "Resource": "arn:aws:iam::000000000000:role/*"},
			{"Sid": "NotAdmins", "Effect": "Deny", "Action": "iam:*", "Resource": "arn:aws:iam::000000000000:role/admin"}
		]
	}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	verdicts := map[iampolicy.Verdict]string{iampolicy.Allow: "allowed", iampolicy.Deny: "denied", iampolicy.Neutral: "not allowed"}
	for _, request := range []iampolicy.Request{
		{Action: "iam:GetRole", Resource: "arn:aws:iam::000000000000:role/nodes"},
		{Action: "iam:GetRole", Resource: "arn:aws:iam::000000000000:role/admin"},
		{Action: "iam:GetUser", Resource: "arn:aws:iam::000000000000:user/alice"},
	} {
		decision := document.Evaluate(request)
		fmt.Println(request.Action, request.Resource, verdicts[decision.Verdict], decision.SID)
	}
	// Output:
	// iam:GetRole arn:aws:iam::000000000000:role/nodes allowed Roles
	// iam:GetRole arn:aws:iam::000000000000:role/admin denied NotAdmins
	// iam:GetUser arn:aws:iam::000000000000:user/alice not allowed
}

// A document is read strictly: problems are reported with their paths.
func ExampleParse() {
	_, err := iampolicy.Parse(iampolicy.Managed, `{"Version": "2012-10-17", "Statement": {"Effect": "allow", "Action": "iam:*", "Resource": "*"}}`)
	fmt.Println(err)
	// Output: $.Statement.Effect: it must be Allow or Deny
}
