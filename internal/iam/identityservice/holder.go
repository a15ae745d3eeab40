// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"muster.dev/muster/internal/aws/awsfront"
)

// Holder returns the caller that has an access key now, with the session token of temporary credentials. It is for what this process asks and
// does for somebody who proved the identity by [Service.Verify]: nothing is proven by a key's id. The error is the account's refusal of a key
// that ended.
func Holder(s *Service, accessKeyID, sessionToken string) (awsfront.Caller, error) {
	now := s.config.Now()
	state, err := s.config.Store.State()
	if err != nil {
		return nil, away(err)
	}
	p, err := s.lookup(state, accessKeyID, sessionToken, now)
	if err != nil {
		return nil, badToken(err)
	}
	c := Caller{admitted: admitted{principal: p, region: s.config.Region, now: now, secure: true}, holder: p.arn}
	if role, ok := state.RoleByID(p.id); ok {
		c.holder = role.ARN()
	}
	return c, nil
}
