// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
	"muster.dev/muster/internal/iam/tokenrefusal"
	"muster.dev/muster/internal/iam/webidentity"
)

// Issuers are those whose tokens may be exchanged for credentials.
type Issuers interface {
	// Keys finds the keys of an issuer, fetched anew if that may help to find the one of keyID. Own reports whether the
	// issuer is that of a cluster of the account. An error means that the keys cannot be had now.
	Keys(ctx context.Context, issuer, keyID string) (keys webidentity.Keys, own bool, err error)
	// Exists reports whether the pod and the service account that a token of a cluster of the account is bound to
	// exist. The error is ErrGone if they do not, and another if nobody can tell. The token or the session was issued
	// then: the pod of a new one may not have been heard of. It must not take long.
	Exists(issuer string, to webidentity.Bound, issued time.Time) error
}

// ErrGone means that a pod or its service account does not exist any more.
var ErrGone = errors.New("does not exist any more")

const (
	actionWebIdentity = "AssumeRoleWithWebIdentity"
	minWebToken       = 4 // characters, as in STS's model
)

type webIdentityIn struct {
	RoleArn          string
	RoleSessionName  string
	WebIdentityToken string
	DurationSeconds  *int32
	Policy           *string
	// The fields below are read to be refused by name.
	PolicyArns []policyArn
	ProviderId *string
}

type webIdentityOut struct {
	SubjectFromWebIdentityToken string
	Audience                    string
	AssumedRoleUser             assumedRoleUser
	Credentials                 credentials
	Provider                    string // the ARN
	SourceIdentity              *string
	PackedPolicySize            *int
}

// exchanged is a token that was found good, and who it is from.
type exchanged struct {
	claims   webidentity.Claims
	provider iam.OIDCProvider
	audience string
	bound    webidentity.Bound // of a cluster of the account
}

// assumeRoleWithWebIdentity returns a session of a role for a token, if its issuer is a provider of the role's account
// and the trust policy lets the token in. Nobody's signature is asked for.
func (s *Service) assumeRoleWithWebIdentity(c *call, in webIdentityIn) (*webIdentityOut, error) {
	c.record.Resource = in.RoleArn
	wanted, err := checkWebIdentity(in)
	if err != nil {
		return nil, err
	}
	token, err := s.exchange(c, wanted.Account, in.WebIdentityToken)
	if err != nil {
		return nil, err
	}
	c.record.Principal = token.provider.ARN().String() + ":" + token.claims.Subject
	awsfront.Proven(c.ctx)
	if !s.subjects.allow(token.provider.URL+" "+token.claims.Subject, c.now) {
		return nil, iamfault.Errorf(iamfault.Throttling, "Rate exceeded")
	}
	path, name, _ := wanted.Role()
	role, ok := c.state.Role(wanted.Account, name)
	if !ok || role.Path != path {
		return nil, notByToken("sts:"+actionWebIdentity, "there is no such role")
	}
	duration := iam.DefaultAssume
	if in.DurationSeconds != nil {
		duration = time.Duration(*in.DurationSeconds) * time.Second
	}
	next := Session{
		PrincipalID: role.ID, Name: in.RoleSessionName, SourceIdentity: token.claims.SourceIdentity,
		RootIssuer: token.claims.Issuer, RootBound: token.bound, RootRole: role.ID,
	}
	if in.Policy != nil {
		if _, err := s.parsed.parse(iampolicy.Session, *in.Policy); err != nil {
			return nil, err
		}
		next.Policy = *in.Policy
	}
	passed := tagsOfClaims(token.claims)
	if next.Tags, err = sessionTags(principal{}, passed, token.claims.TransitiveTagKeys); err != nil {
		return nil, err
	}
	if err := s.trustsToken(c, role, token, in.RoleSessionName, duration, passed); err != nil {
		return nil, err
	}
	if err := iam.CheckAssume(role, duration, false); err != nil { // it says what the role is like: nobody's business before
		return nil, err
	}
	session, sealed, err := s.issue(next, duration, c.now)
	if err != nil {
		return nil, packed(err)
	}
	out := &webIdentityOut{
		SubjectFromWebIdentityToken: token.claims.Subject, Audience: token.audience, Provider: token.provider.ARN().String(),
		AssumedRoleUser: assumedRoleUser{AssumedRoleId: role.SessionID(session.Name), Arn: role.SessionARN(session.Name).String()},
		Credentials:     credentialsOf(session, sealed),
	}
	if next.SourceIdentity != "" {
		out.SourceIdentity = &next.SourceIdentity
	}
	if in.Policy != nil || len(passed) > 0 {
		size := len(sealed) * 100 / maxSealed
		out.PackedPolicySize = &size
	}
	return out, nil
}

// checkWebIdentity checks what can be told from the parameters alone, and reads the role's ARN.
func checkWebIdentity(in webIdentityIn) (arn.ARN, error) {
	switch {
	case len(in.PolicyArns) > 0:
		return arn.ARN{}, unsupported("managed session policies (PolicyArns)", "pass the document as Policy")
	case in.ProviderId != nil:
		return arn.ARN{}, unsupported("tokens of OAuth 2.0 (ProviderId)", "leave it out, and send a token of an OpenID Connect provider")
	case len(in.WebIdentityToken) < minWebToken:
		return arn.ARN{}, iamfault.Errorf(iamfault.ValidationError, "WebIdentityToken must have %d to %d characters", minWebToken, webidentity.MaxSize)
	}
	if err := iam.CheckSessionName(in.RoleSessionName); err != nil {
		return arn.ARN{}, err
	}
	if instanceLike(in.RoleSessionName) {
		return arn.ARN{}, iamfault.Errorf(iamfault.ValidationError, "RoleSessionName is %q, which looks like the id of an instance: "+
			"only instances have sessions of such a name", in.RoleSessionName)
	}
	wanted, err := arn.Parse(in.RoleArn)
	if err != nil {
		return arn.ARN{}, iamfault.Errorf(iamfault.ValidationError, "RoleArn: %v", err)
	}
	if _, _, ok := wanted.Role(); !ok {
		return arn.ARN{}, iamfault.Errorf(iamfault.ValidationError, "RoleArn is %.200q: it must be the ARN of a role", in.RoleArn)
	}
	return wanted, nil
}

// exchange finds out whose a token is. Errors are *awsfault.Error.
func (s *Service) exchange(c *call, account, text string) (exchanged, error) {
	read, err := webidentity.Read(text)
	if err != nil {
		return exchanged{}, badWebToken(err, c.now)
	}
	provider, ok := providerOf(c.state, account, read.Issuer())
	if !ok || s.config.Issuers == nil {
		return exchanged{}, iamfault.Errorf(iamfault.InvalidIdentityToken, "No OpenIDConnect provider found in your account for %.255s", read.Issuer())
	}
	keys, own, err := s.config.Issuers.Keys(c.ctx, read.Issuer(), read.KeyID())
	if err != nil {
		return exchanged{}, iamfault.Because(err, iamfault.IDPCommunicationError, "Couldn't retrieve verification key from your identity provider, please reference AssumeRoleWithWebIdentity documentation for requirements")
	}
	out := exchanged{provider: provider}
	if out.claims, err = read.Verify(keys, c.now); err == nil {
		out.audience, err = out.claims.For(provider.ClientIDs...)
	}
	if err == nil && out.claims.SourceIdentity != "" && iam.CheckSessionName(out.claims.SourceIdentity) != nil { // which the rules are the same for
		err = &tokenrefusal.Refusal{Rule: webidentity.RuleClaims, Saw: "a source identity that is not one", Fix: `it must have 2 to 64 of the characters [\w+=,.@-]`}
	}
	if err == nil && own {
		out.bound, err = out.claims.Bound()
	}
	if err != nil {
		return exchanged{}, badWebToken(err, c.now)
	}
	if !own {
		return out, nil
	}
	switch err := s.config.Issuers.Exists(out.claims.Issuer, out.bound, out.claims.IssuedAt); {
	case errors.Is(err, ErrGone):
		return exchanged{}, iamfault.Because(err, iamfault.IDPRejectedClaim, "The token is not good any more: the pod or the service account that it is bound to "+ErrGone.Error())
	case err != nil:
		return exchanged{}, iamfault.Because(err, iamfault.IDPCommunicationError, "whether the pod of the token exists cannot be found out now: try again")
	}
	return out, nil
}

// providerOf finds the provider of an issuer: URLs are compared without their scheme, as IAM does.
func providerOf(state *State, account, issuer string) (iam.OIDCProvider, bool) {
	url, err := iam.ProviderURL(issuer)
	if err != nil {
		return iam.OIDCProvider{}, false
	}
	return state.Provider(iam.OIDCProvider{Account: account, URL: url}.ARN().String())
}

// badWebToken says no to a token in STS's codes, and in its words where they are known.
func badWebToken(err error, now time.Time) error {
	r, ok := errors.AsType[*tokenrefusal.Refusal](err)
	if !ok {
		return err
	}
	code, message := iamfault.InvalidIdentityToken, r.Error()
	switch r.Rule {
	case webidentity.RuleSize, webidentity.RuleForm, webidentity.RuleHeader, webidentity.RuleClaims:
		message = "The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token): " + r.Error()
	case webidentity.RuleMissing:
		message = "Missing a required claim: " + r.Saw
	case webidentity.RuleAudience:
		message = "Incorrect token audience"
	case webidentity.RuleKey:
		message = "Couldn't retrieve verification key from your identity provider, please reference AssumeRoleWithWebIdentity documentation for requirements"
	case webidentity.RuleExpired:
		code, message = iamfault.ExpiredTokenException, "Token expired: current date/time "+strconv.FormatInt(now.Unix(), 10)+" must be before the expiration date/time: "+r.Saw
	}
	return iamfault.Because(err, code, message)
}

// notByToken says no as STS does; why is for the log.
func notByToken(action, why string) error {
	return iamfault.Because(errors.New(why), iamfault.AccessDenied, "Not authorized to perform "+action)
}

// trustsToken asks the role's trust policy.
func (s *Service) trustsToken(c *call, role iam.Role, token exchanged, name string, duration time.Duration, passed []iam.Tag) error {
	trust, err := s.parsed.parse(iampolicy.Trust, role.Trust)
	if err != nil {
		return notByToken("sts:"+actionWebIdentity, "the trust policy cannot be read: "+err.Error())
	}
	caller := iampolicy.Caller{Federated: token.provider.ARN().String()}
	conditions := iampolicy.NewContext(caller, iampolicy.Facts{Now: c.now, SourceIP: c.source, Secure: c.secure, UserAgent: c.userAgent, Region: c.region})
	maps.Copy(conditions, map[string][]string{
		token.provider.URL + ":sub": {token.claims.Subject}, token.provider.URL + ":aud": token.claims.EffectiveAudiences(),
		"sts:rolesessionname": {name}, "sts:durationseconds": {strconv.Itoa(int(duration / time.Second))}, "aws:resourceaccount": {role.Account},
	})
	addTags(conditions, role.Tags)
	addSessionTags(conditions, passed, token.claims.TransitiveTagKeys)
	actions := []string{"sts:" + actionWebIdentity}
	if len(passed) > 0 {
		actions = append(actions, actionTagSession)
	}
	if token.claims.SourceIdentity != "" {
		conditions["sts:sourceidentity"] = []string{token.claims.SourceIdentity}
		actions = append(actions, "sts:SetSourceIdentity")
	}
	for _, action := range actions {
		d := trust.Evaluate(iampolicy.Request{Caller: caller, Action: action, Resource: role.ARN().String(), Context: conditions})
		if d.Verdict != iampolicy.Allow {
			return notByToken(action, "trust policy of "+role.Name+": "+d.Reason)
		}
	}
	return nil
}

// tagsOfClaims are the session tags that the issuer says, by key.
func tagsOfClaims(claims webidentity.Claims) []iam.Tag {
	tags := make([]iam.Tag, 0, len(claims.Tags))
	for key, value := range claims.Tags {
		tags = append(tags, iam.Tag{Key: key, Value: value})
	}
	slices.SortFunc(tags, func(a, b iam.Tag) int { return strings.Compare(a.Key, b.Key) })
	return tags
}

// rootedInToken checks what a session was exchanged for: it ends with the provider in IAM, the pod, and the service
// account.
func (s *Service) rootedInToken(state *State, session Session) error {
	role, ok := state.RoleByID(session.RootRole)
	if s.config.Issuers == nil || !ok {
		return invalidToken("the role %s that the session's token was exchanged for does not exist any more", session.RootRole)
	}
	if _, ok := providerOf(state, role.Account, session.RootIssuer); !ok {
		return invalidToken("IAM has no provider for %s any more", session.RootIssuer)
	}
	if session.RootBound == (webidentity.Bound{}) {
		return nil
	}
	switch err := s.config.Issuers.Exists(session.RootIssuer, session.RootBound, session.Issued); {
	case errors.Is(err, ErrGone):
		return invalidToken("the session was exchanged for a token of a pod: %v", err)
	case err != nil:
		return away(err)
	}
	return nil
}
