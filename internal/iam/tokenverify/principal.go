// SPDX-License-Identifier: Apache-2.0

package tokenverify

import (
	"fmt"
	"strings"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identity"
)

// principalOf reads what GetCallerIdentity answers: the ARN, the account, and the user ID, which for sessions has the
// session's name behind a colon. An answer whose parts do not agree is not used.
func principalOf(name, account, userID, accessKeyID string) (identity.Principal, error) {
	parsed, err := arn.Parse(name)
	if err != nil {
		return identity.Principal{}, fmt.Errorf("reading the ARN of STS's answer: %w", err)
	}
	canonical, err := parsed.Canonical()
	if err != nil {
		return identity.Principal{}, fmt.Errorf("naming the role or user of STS's answer: %w", err)
	}
	if account != parsed.Account {
		return identity.Principal{}, fmt.Errorf("the answer says account %.32q, its ARN %s", account, parsed)
	}
	p := identity.Principal{ARN: parsed, CanonicalARN: canonical, Account: account, AccessKeyID: accessKeyID}
	var more bool
	p.UserID, p.SessionName, more = strings.Cut(userID, ":")
	if p.UserID == "" || more && (p.SessionName == "" || strings.Contains(p.SessionName, ":")) {
		return identity.Principal{}, fmt.Errorf("the user ID %.128q of the answer is not an ID, or an ID and a session's name", userID)
	}
	if _, session, ok := parsed.AssumedRole(); ok && session != p.SessionName {
		return identity.Principal{}, fmt.Errorf("the answer says session %.80q, its ARN %s", p.SessionName, parsed)
	}
	return p, nil
}
