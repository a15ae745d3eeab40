// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/aws/sigv4"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/iam/tokenrefusal"
)

const (
	// instanceSession is how long the credentials of a machine last, and renewBefore when they are replaced.
	instanceSession = 6 * time.Hour
	renewBefore     = time.Hour
	// unnamed is how long an answer about a session holds whose end the stream of changes would not name.
	unnamed = time.Second
	// serviceEC2 is the principal that assumes the role of an instance profile.
	serviceEC2 = "ec2.amazonaws.com"
)

var _ keyservice.Backend = (*Service)(nil)

// Verify finds the principal that made a token for a cluster, the one whose authenticator asks. The key that checks it
// is derived here and stays here: SigV4 binds a key to a day, a region and a service, and to no cluster, so that its
// holder could make tokens for all of them.
func (s *Service) Verify(_ context.Context, cluster, host, query string) (keyservice.Maker, error) {
	now := s.config.Now()
	token, err := ststoken.Read(host, query, cluster, now)
	if err != nil {
		return keyservice.Maker{}, malformed(err)
	}
	signed := token.Signed
	state, err := s.config.Store.State()
	if err != nil {
		return keyservice.Maker{}, err
	}
	p, err := s.lookup(state, signed.AccessKeyID, signed.SessionToken, now)
	if err != nil {
		return keyservice.Maker{}, unknownOf(err)
	}
	if token.Verify(sigv4.Derive(p.secret.Reveal(), signed.Scope), cluster) != nil {
		return keyservice.Maker{}, &keyservice.Unknown{
			Rule: ststoken.RuleSignature, Code: sigv4.CodeMismatch,
			Reason: fmt.Sprintf("a signature that key %s did not make for cluster %q", signed.AccessKeyID, cluster),
		}
	}
	s.used.note(p.keyID, apiSTS, signed.Region, now)
	m := keyservice.Maker{ARN: p.arn.String(), Account: p.account, UserID: p.id, Instance: p.instance, Machine: p.machine, ValidUntil: token.Expires}
	if p.session != nil {
		m.SessionName = p.session.Name
		m.ValidUntil = earlier(m.ValidUntil, p.session.Expires)
		if p.session.RootPod != (PodRoot{}) || p.session.RootIssuer != "" || p.session.RootCluster != "" || p.session.RootInstance != "" && p.session.Instance == "" {
			m.ValidUntil = earlier(m.ValidUntil, now.Add(unnamed))
		}
	}
	return m, nil
}

// malformed is the "no" to a request that an authenticator should not have sent here.
func malformed(err error) error {
	no, ok := errors.AsType[*tokenrefusal.Refusal](err)
	if !ok {
		return err
	}
	code := sigv4.CodeIncomplete
	if no.Rule == ststoken.RuleExpired || no.Rule == ststoken.RuleEarly {
		code = "RequestExpired"
	}
	return &keyservice.Unknown{Rule: no.Rule, Code: code, Reason: no.Saw, Fix: no.Fix}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func unknown(code iamfault.Code, format string, args ...any) error {
	return &keyservice.Unknown{Code: string(code), Reason: fmt.Sprintf(format, args...)}
}

func unknownOf(err error) error {
	if no, ok := errors.AsType[*refused](err); ok {
		return &keyservice.Unknown{Code: string(no.code), Reason: no.reason}
	}
	return err
}

// RoleCredentials gives the credentials of an instance's role to the instance metadata service, which knows by the
// address which instance asks. They are the same until an hour before their end.
func (s *Service) RoleCredentials(_ context.Context, instanceID string) (keyservice.RoleCredentials, error) {
	now := s.config.Now()
	state, err := s.config.Store.State()
	if err != nil {
		return keyservice.RoleCredentials{}, err
	}
	instance, ok := s.config.Instances.Lookup(instanceID)
	if !ok {
		return keyservice.RoleCredentials{}, unknown("InvalidInstanceID.NotFound", "there is no instance %.40q", instanceID)
	}
	name := instance.Profile
	if name == "" {
		return keyservice.RoleCredentials{}, unknown(iamfault.NoSuchEntity, "the instance %s has no instance profile", instanceID)
	}
	profile, ok := state.Profile(s.config.Account, name)
	if !ok {
		return keyservice.RoleCredentials{}, unknown(iamfault.NoSuchEntity, "the instance profile %s of the instance %s does not exist", name, instanceID)
	}
	role, ok := state.RoleByID(profile.RoleID)
	switch {
	case !ok:
		return keyservice.RoleCredentials{}, unknown(iamfault.NoSuchEntity, "the instance profile %s carries no role that exists: add one with iam:AddRoleToInstanceProfile", name)
	case instance.PrivateDNSName == "":
		return keyservice.RoleCredentials{}, unknown(keyservice.CodeNotYet, "the instance %s has no private DNS name yet", instanceID)
	}
	if err := s.trustsInstances(role, instance, now); err != nil {
		return keyservice.RoleCredentials{}, unknown(iamfault.AccessDenied, "%v", err)
	}
	s.issuedMu.Lock()
	defer s.issuedMu.Unlock()
	if c, ok := s.issued[instanceID]; ok && c.roleID == role.ID && c.InstanceProfileID == profile.ID && now.Before(c.Expiration.Add(-renewBefore)) {
		return c.RoleCredentials, nil
	}
	named := instanceID
	if instance.Fargate {
		named = instance.PrivateDNSName
	}
	session, token, err := s.issue(Session{
		PrincipalID: role.ID, Name: named, Instance: instanceID, RootInstance: instanceID, RootRole: role.ID,
	}, instanceSession, now)
	if err != nil {
		return keyservice.RoleCredentials{}, err
	}
	c := keyservice.RoleCredentials{
		RoleName: role.Name, InstanceProfileARN: profile.ARN().String(), InstanceProfileID: profile.ID,
		AccessKeyID: session.AccessKeyID, SecretAccessKey: session.Secret.Reveal(), SessionToken: token,
		LastUpdated: session.Issued, Expiration: session.Expires,
	}
	for id := range s.issued {
		if _, ok := s.config.Instances.Lookup(id); !ok {
			delete(s.issued, id)
		}
	}
	s.issued[instanceID] = issued{c, role.ID}
	s.config.Log.Info("issued credentials of an instance", "instance", instanceID, "role", role.Name, "access_key_id", session.AccessKeyID, "until", session.Expires)
	return c, nil
}

// trustsInstances reports whether instances may have a role: to get credentials, and to use those that they have.
func (s *Service) trustsInstances(role iam.Role, instance Instance, now time.Time) error {
	service := instance.service()
	if err := s.trusts(role, iampolicy.Caller{Service: service}, "sts:AssumeRole", nil, now); err != nil {
		return fmt.Errorf("the trust policy of the role %s does not let %s assume it: %w", role.Name, service, err)
	}
	return nil
}

// issued are the credentials that an instance has now.
type issued struct {
	keyservice.RoleCredentials
	roleID string
}

// issue makes a session's credentials.
func (s *Service) issue(session Session, duration time.Duration, now time.Time) (Session, string, error) {
	var err error
	if session.AccessKeyID, err = iam.NewID(iam.SessionKeyPrefix, s.config.Random); err != nil {
		return Session{}, "", err
	}
	if session.Secret, err = iam.NewSecret(s.config.Random); err != nil {
		return Session{}, "", err
	}
	session.Issued = now.UTC().Truncate(time.Second)
	session.Expires = session.Issued.Add(duration)
	token, err := s.config.Sealer.Seal(session)
	return session, token, err
}
