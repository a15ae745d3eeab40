// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"time"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/iam/registrylogin"
)

// loginTime is how long a password of the image registry is good, as ECR has it.
const loginTime = 12 * time.Hour

// loginVersion begins a sealed login, where a session's begins with sealVersion: neither can pass for the other.
const loginVersion = 2

// sealedLogin is the content of a password: whose it is, and nothing that signs requests.
type sealedLogin struct {
	AccessKeyID string `json:"k"`
	// Token is the session's of temporary credentials.
	Token   string `json:"t,omitempty"`
	Expires int64  `json:"e"`
}

var _ registrylogin.Backend = (*Service)(nil)

// Login makes a password for the image registry, by which that knows the caller. It is worth nothing once the caller's
// key, session, user or role is.
func (s *Service) Login(by awsfront.Caller) (password string, expires time.Time, err error) {
	c, ok := by.(Caller)
	if !ok {
		return "", time.Time{}, errNotOurs
	}
	now := s.config.Now()
	expires = now.Add(loginTime).UTC().Truncate(time.Second)
	in := sealedLogin{AccessKeyID: c.admitted.keyID}
	if session := c.admitted.session; session != nil {
		expires = earlier(expires, session.Expires)
		if in.Token, err = s.config.Sealer.Seal(*session); err != nil {
			return "", expires, err
		}
	}
	in.Expires = expires.Unix()
	password, err = s.config.Sealer.sealLogin(in)
	return password, expires, err
}

// Decide implements [registrylogin.Backend].
func (s *Service) Decide(q registrylogin.Question) (registrylogin.Answer, error) {
	now := s.config.Now()
	in, err := s.config.Sealer.openLogin(q.Password)
	if err != nil {
		return registrylogin.Answer{}, &registrylogin.RefusedError{Reason: err.Error()}
	}
	if !now.Before(time.Unix(in.Expires, 0)) {
		return registrylogin.Answer{}, &registrylogin.RefusedError{Reason: "the password has expired: get another one by `aws ecr get-login-password`"}
	}
	state, err := s.config.Store.State()
	if err != nil {
		return registrylogin.Answer{}, err
	}
	p, err := s.lookup(state, in.AccessKeyID, in.Token, now)
	if err != nil {
		if no, ok := badToken(err).(*awsfault.Error); ok { //nolint:errorlint // it is made there
			return registrylogin.Answer{}, &registrylogin.RefusedError{Reason: no.Message}
		}
		return registrylogin.Answer{}, err
	}
	a := admitted{principal: p, region: s.config.Region, now: now, secure: true, userAgent: q.UserAgent}
	if source, err := netip.ParseAddr(q.Source); err == nil {
		a.source = source
	}
	answer := registrylogin.Answer{Principal: p.arn.String(), Account: p.account, Denied: map[string]string{}}
	for _, action := range q.Actions {
		if err := s.permit(&call{admitted: a, state: state}, action, target{resource: q.Resource}); err != nil {
			no, ok := err.(*awsfault.Error) //nolint:errorlint // what permit returns
			if !ok {
				return registrylogin.Answer{}, err
			}
			answer.Denied[action] = no.Message
		}
	}
	return answer, nil
}

func (s *Sealer) sealLogin(in sealedLogin) (string, error) {
	plain, err := json.Marshal(in)
	if err != nil {
		return "", fmt.Errorf("encoding login: %w", err)
	}
	current := s.current.Load()
	aead := current.keys[current.newest]
	sealed := make([]byte, sealHeader+aead.NonceSize(), sealHeader+aead.NonceSize()+len(plain)+aead.Overhead())
	sealed[0] = loginVersion
	binary.BigEndian.PutUint32(sealed[1:], current.newest)
	if _, err := io.ReadFull(rand.Reader, sealed[sealHeader:]); err != nil {
		return "", fmt.Errorf("sealing login: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(sealed, sealed[sealHeader:], plain, sealed[:sealHeader])), nil //nolint:gosec // G407: the nonce is what was just read
}

func (s *Sealer) openLogin(password string) (sealedLogin, error) {
	var in sealedLogin
	errPassword := fmt.Errorf("the password was not issued here, or is damaged: get one by `aws ecr get-login-password`")
	if len(password) > maxToken {
		return in, errPassword
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(password)
	if err != nil || len(sealed) < sealHeader || sealed[0] != loginVersion {
		return in, errPassword
	}
	aead, ok := s.current.Load().keys[binary.BigEndian.Uint32(sealed[1:])]
	if !ok || len(sealed) < sealHeader+aead.NonceSize() {
		return in, errPassword
	}
	plain, err := aead.Open(nil, sealed[sealHeader:sealHeader+aead.NonceSize()], sealed[sealHeader+aead.NonceSize():], sealed[:sealHeader])
	if err != nil || json.Unmarshal(plain, &in) != nil {
		return sealedLogin{}, errPassword
	}
	return in, nil
}
