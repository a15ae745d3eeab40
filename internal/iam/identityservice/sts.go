// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

type none struct{}

type callerIdentity struct {
	Arn, UserId, Account string
}

type credentials struct {
	AccessKeyId, SecretAccessKey, SessionToken string
	Expiration                                 time.Time
}

type assumeRoleIn struct {
	RoleArn           string
	RoleSessionName   string
	DurationSeconds   *int32
	ExternalId        *string
	Policy            *string
	Tags              []tag
	TransitiveTagKeys []string
	// The fields below are read to be refused by name.
	PolicyArns     []policyArn
	SerialNumber   *string
	TokenCode      *string
	SourceIdentity *string
}

type policyArn struct {
	Arn string
}

type assumedRoleUser struct{ AssumedRoleId, Arn string }

type assumeRoleOut struct {
	AssumedRoleUser         assumedRoleUser
	Credentials             credentials
	PackedPolicySize        *int // the field that older SDKs know
	SessionTokenSize        int
	SessionTokenUtilization int // percent
}

type sessionTokenIn struct {
	DurationSeconds *int32
	SerialNumber    *string
	TokenCode       *string
}

type sessionTokenOut struct{ Credentials credentials }

func (s *Service) registerSTS(front *awsfront.Front) {
	register(s, front, apiSTS, "GetCallerIdentity", open, nil, func(c *call, _ none) (*callerIdentity, error) {
		return &callerIdentity{Arn: c.arn.String(), UserId: c.userID(), Account: c.account}, nil
	})
	register(s, front, apiSTS, "AssumeRole", judged, nil, s.assumeRole)
	register(s, front, apiSTS, "GetSessionToken", open, nil, s.getSessionToken)
	register(s, front, apiSTS, actionWebIdentity, unsigned, nil, s.assumeRoleWithWebIdentity)
}

// assumeRole returns a session of a role if both the role's trust policy and the caller's policies allow it.
func (s *Service) assumeRole(c *call, in assumeRoleIn) (*assumeRoleOut, error) {
	c.record.Resource = in.RoleArn
	switch {
	case len(in.PolicyArns) > 0:
		return nil, unsupported("managed session policies (PolicyArns)", "pass the document as Policy")
	case in.SerialNumber != nil || in.TokenCode != nil:
		return nil, unsupported("a second factor (SerialNumber, TokenCode)", "leave it out")
	case in.SourceIdentity != nil:
		return nil, unsupported("SourceIdentity", "leave it out")
	}
	if err := iam.CheckSessionName(in.RoleSessionName); err != nil {
		return nil, err
	}
	if instanceLike(in.RoleSessionName) {
		return nil, iamfault.Errorf(iamfault.ValidationError, "RoleSessionName is %q, which looks like the id of an instance: "+
			"only instances have sessions of such a name", in.RoleSessionName)
	}
	if in.ExternalId != nil {
		if err := iam.CheckExternalID(*in.ExternalId); err != nil {
			return nil, err
		}
	}
	passed := tagsFrom(in.Tags)
	tags, err := sessionTags(c.principal, passed, in.TransitiveTagKeys)
	if err != nil {
		return nil, err
	}
	wanted, err := arn.Parse(in.RoleArn)
	if err != nil {
		return nil, iamfault.Errorf(iamfault.ValidationError, "RoleArn: %v", err)
	}
	path, name, ok := wanted.Role()
	if !ok {
		return nil, iamfault.Errorf(iamfault.ValidationError, "RoleArn is %.200q: it must be the ARN of a role", in.RoleArn)
	}
	role, ok := c.state.Role(wanted.Account, name)
	if !ok || role.Path != path { // as if it were there and did not trust the caller: names of roles are nobody's business
		return nil, s.notAssumable(c, actionAssume, in.RoleArn, iampolicy.Decision{Reason: "there is no such role"})
	}
	duration := iam.DefaultAssume
	if in.DurationSeconds != nil {
		duration = time.Duration(*in.DurationSeconds) * time.Second
	}
	chained := c.session != nil
	if in.Policy != nil {
		if _, err := s.parsed.parse(iampolicy.Session, *in.Policy); err != nil {
			return nil, err
		}
	}
	rights, err := s.rights(c.state, c.principal)
	if err != nil {
		return nil, err
	}
	trust, err := s.parsed.parse(iampolicy.Trust, role.Trust)
	if err != nil {
		return nil, s.notAssumable(c, actionAssume, in.RoleArn, iampolicy.Decision{Reason: "the trust policy cannot be read: " + err.Error()})
	}
	conditions := map[string][]string{
		"sts:rolesessionname": {in.RoleSessionName}, "sts:durationseconds": {strconv.Itoa(int(duration / time.Second))}, "aws:resourceaccount": {role.Account},
	}
	if in.ExternalId != nil {
		conditions["sts:externalid"] = []string{*in.ExternalId}
	}
	addTags(conditions, role.Tags)
	addSessionTags(conditions, passed, in.TransitiveTagKeys)
	actions := []string{actionAssume}
	if len(tags.All()) > 0 { // inherited ones are passed, too
		actions = append(actions, actionTagSession)
	}
	if chained && c.session.SourceIdentity != "" { // it is kept, and so set again
		conditions["sts:sourceidentity"] = []string{c.session.SourceIdentity}
		actions = append(actions, "sts:SetSourceIdentity")
	}
	for _, action := range actions {
		request := c.request(action, target{resource: role.ARN().String(), context: conditions})
		if d := iampolicy.Assume(iampolicy.Named{Name: "trust policy of " + role.Name, Document: trust}, role.Account, rights, request); d.Verdict != iampolicy.Allow {
			return nil, s.notAssumable(c, action, in.RoleArn, d)
		}
	}
	if err := iam.CheckAssume(role, duration, chained); err != nil { // it says what the role is like: nobody's business before
		return nil, err
	}
	next := Session{PrincipalID: role.ID, Name: in.RoleSessionName, Chained: chained, Tags: tags}
	s.descend(&next, c.principal)
	if in.Policy != nil {
		next.Policy = *in.Policy
	}
	session, token, err := s.issue(next, duration, c.now)
	if err != nil {
		return nil, packed(err)
	}
	out := &assumeRoleOut{
		AssumedRoleUser: assumedRoleUser{AssumedRoleId: role.SessionID(session.Name), Arn: role.SessionARN(session.Name).String()},
		Credentials:     credentialsOf(session, token), SessionTokenSize: len(token), SessionTokenUtilization: len(token) * 100 / maxSealed,
	}
	if in.Policy != nil || len(tags.All()) > 0 {
		out.PackedPolicySize = &out.SessionTokenUtilization
	}
	return out, nil
}

const (
	actionAssume     = "sts:AssumeRole"
	actionTagSession = "sts:TagSession"
)

// notAssumable says no as STS does; why is for the log.
func (s *Service) notAssumable(c *call, action, role string, d iampolicy.Decision) error {
	return iamfault.Because(errors.New(d.Policy+": "+d.Reason), iamfault.AccessDenied, "User: "+c.arn.String()+" is not authorized to perform: "+action+" on resource: "+role)
}

// descend gives a session the root of the credentials that it is made with.
func (s *Service) descend(next *Session, from principal) {
	if from.session == nil {
		next.RootKey = from.keyID
		return
	}
	next.RootKey, next.RootInstance, next.RootRole = from.session.RootKey, from.session.RootInstance, from.session.RootRole
	next.RootPod, next.RootCluster = from.session.RootPod, from.session.RootCluster
	next.RootIssuer, next.RootBound, next.SourceIdentity = from.session.RootIssuer, from.session.RootBound, from.session.SourceIdentity
}

// getSessionToken gives a user temporary credentials of its own. Policies have no say, as on AWS.
func (s *Service) getSessionToken(c *call, in sessionTokenIn) (*sessionTokenOut, error) {
	if in.SerialNumber != nil || in.TokenCode != nil {
		return nil, unsupported("a second factor (SerialNumber, TokenCode)", "leave it out")
	}
	if c.session != nil {
		return nil, iamfault.Errorf(iamfault.AccessDenied, "Cannot call GetSessionToken with session credentials")
	}
	duration := iam.DefaultSession
	if in.DurationSeconds != nil {
		duration = time.Duration(*in.DurationSeconds) * time.Second
	}
	duration, err := iam.CheckSessionToken(duration, false)
	if err != nil {
		return nil, err
	}
	session, token, err := s.issue(Session{PrincipalID: c.id, RootKey: c.keyID}, duration, c.now)
	if err != nil {
		return nil, packed(err)
	}
	return &sessionTokenOut{credentialsOf(session, token)}, nil
}

func credentialsOf(s Session, token string) credentials {
	return credentials{AccessKeyId: s.AccessKeyID, SecretAccessKey: s.Secret.Reveal(), SessionToken: token, Expiration: s.Expires}
}

func packed(err error) error {
	if errors.Is(err, errTooLarge) {
		return iamfault.Errorf(iamfault.PackedPolicyTooLarge, "the session policy and the tags do not fit into the session token, which also goes into Kubernetes tokens: "+
			"make them shorter, or attach a policy to the role and tag it")
	}
	return err
}

func unsupported(what, instead string) error {
	return iamfault.Errorf(iamfault.ValidationError, "muster does not support %s: %s", what, instead)
}

// instanceLike tells what could pass for the name that an instance's session has: authenticators make node names of
// those.
func instanceLike(name string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(name), "i-")
	return ok && (len(rest) == 8 || len(rest) == 17) && strings.Trim(rest, "0123456789abcdefghijklmnopqrstuvwxyz_") == ""
}
