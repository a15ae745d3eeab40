// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/webidentity"
)

// ErrNotTrusted is an error about a role that is there, and whose trust policy does not let a pod assume it.
var ErrNotTrusted = errors.New("the trust policy of the role does not let it in")

// distrust is an error that is [ErrNotTrusted], too.
type distrust struct{ error }

func (distrust) Is(target error) bool { return target == ErrNotTrusted }
func (d distrust) Unwrap() error      { return d.error }

// CheckPod says why AssumeForPod would give a pod nothing; nil if it would. Nothing is given.
func (s *Service) CheckPod(ctx context.Context, in PodRole) error {
	_, err := s.assumeForPod(ctx, in)
	if err != nil && distrusts(s, in) {
		return distrust{withCause(err)}
	}
	return withCause(err)
}

// distrusts reports whether the role for a pod is there, and its trust policy does not let the pod in.
func distrusts(s *Service, in PodRole) bool {
	state, err := s.config.Store.State()
	if err != nil {
		return false
	}
	role, err := s.podRole(state, in.Role)
	return err == nil && s.trustsPods(role, in.Root, s.config.Now()) != nil
}

// CheckWebIdentity says why AssumeRoleWithWebIdentity would not give a role for a token of an issuer with a subject and
// one audience; nil if it would. No token is verified.
func (s *Service) CheckWebIdentity(ctx context.Context, role, issuer, subject, audience string) error {
	state, err := s.config.Store.State()
	if err != nil {
		return err
	}
	wanted, err := arn.Parse(role)
	path, name, ok := wanted.Role()
	if err != nil || !ok {
		return fmt.Errorf("%.200q is not the ARN of a role", role)
	}
	found, ok := state.Role(wanted.Account, name)
	if !ok || found.Path != path {
		return fmt.Errorf("there is no role %s", role)
	}
	provider, ok := providerOf(state, wanted.Account, issuer)
	switch {
	case !ok:
		return fmt.Errorf("IAM has no OpenID Connect provider for %s: make it with aws iam create-open-id-connect-provider", issuer)
	case !slices.Contains(provider.ClientIDs, audience):
		return fmt.Errorf("%s is not among the client ids of IAM's provider for %s, which are %s: add it with aws iam add-client-id-to-open-id-connect-provider", audience, issuer, strings.Join(provider.ClientIDs, ", "))
	}
	c := &call{admitted: admitted{region: s.config.Region, now: s.config.Now(), secure: true}, ctx: ctx, state: state, record: &awsfront.Record{}}
	token := exchanged{provider: provider, audience: audience, claims: webidentity.Claims{Issuer: issuer, Subject: subject, Audiences: []string{audience}}}
	if err := s.trustsToken(c, found, token, "check", iam.DefaultAssume, nil); err != nil {
		return distrust{withCause(err)}
	}
	return nil
}

// withCause is a refusal of STS with what its caller is not told.
func withCause(err error) error {
	if refused, ok := errors.AsType[*awsfault.Error](err); ok && refused.Cause != nil {
		return fmt.Errorf("%s: %w", refused.Message, refused.Cause)
	}
	return err
}
