// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"muster.dev/muster/internal/aws/awsfront"
)

// Deferred is what a service of the account keeps of a caller, to act for the caller when the request is long answered. It
// holds no secret that is readable: a session is sealed, as in its token.
type Deferred struct {
	// KeyID is the access key that the request was signed with.
	KeyID string `json:"keyID"`
	// Token is the sealed session; empty for a key of a user.
	Token string `json:"token,omitempty"`
}

// Defer makes what is to be kept of a caller, whose request was admitted here.
func Defer(s *Service, by awsfront.Caller) (Deferred, error) {
	caller, ok := by.(Caller)
	if !ok {
		return Deferred{}, errNotOurs
	}
	d := Deferred{KeyID: caller.admitted.keyID}
	if caller.admitted.session == nil {
		return d, nil
	}
	if caller.admitted.session.RootService != (ServiceRoot{}) {
		return Deferred{}, errNotOurs
	}
	var err error
	d.Token, err = s.config.Sealer.Seal(*caller.admitted.session)
	return d, err
}

// Resume finds the caller again, as the caller is now: with a key that was deleted or deactivated, a session that has ended, or an
// instance, role or user that does not exist any more the caller is refused, in the words of IAM. It is called for each action that
// is done for the caller: what it returns is the caller of one moment, as that of a request is.
func Resume(s *Service, d Deferred) (Caller, error) {
	state, err := s.config.Store.State()
	if err != nil {
		return Caller{}, away(err)
	}
	now := s.config.Now()
	p, err := s.lookup(state, d.KeyID, d.Token, now)
	if err != nil {
		return Caller{}, badToken(err)
	}
	c := Caller{admitted: admitted{principal: p, region: s.config.Region, now: now, secure: true}, holder: p.arn}
	if role, ok := state.RoleByID(p.id); ok {
		c.holder = role.ARN()
	}
	return c, nil
}
