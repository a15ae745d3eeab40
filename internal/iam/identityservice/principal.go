// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"errors"
	"fmt"
	"time"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
	"muster.dev/muster/internal/iam/identity"
)

// Instances are the machines that exist. It must answer at once.
type Instances interface {
	// Lookup finds an instance.
	Lookup(id string) (Instance, bool)
}

// Instance is one machine, in the words of those that made it: nothing in it comes from the machine.
type Instance struct {
	// Profile is the name of its instance profile; empty if it has none.
	Profile string
	// PrivateDNSName is empty until it was assigned.
	PrivateDNSName string
	// Cluster is the name of the cluster that it was launched for; empty for an instance of no cluster.
	Cluster string
	// Fargate reports whether the instance was made for a pod on Fargate. Its role is a pod execution role, and its sessions
	// have the name of its node, as on EKS.
	Fargate bool
}

// service is the service whose principal the role of the instance must let in.
func (i Instance) service() string {
	if i.Fargate {
		return iampolicy.FargateService
	}
	return serviceEC2
}

// principal is the owner of the credentials that signed something, as they are now.
type principal struct {
	arn     arn.ARN
	account string
	id      string // AIDA… or AROA…
	session *Session
	secret  iam.Secret
	keyID   string
	grants  iam.Grants
	// boundary is the ARN of the policy that bounds the grants; empty without one.
	boundary string
	// instance is set if these are the credentials of that instance's own profile.
	instance *identity.Instance
	// machine is the one that the first of a chain of sessions was made for; nil if it began elsewhere.
	machine *identity.Machine
}

// userID is what GetCallerIdentity calls UserId.
func (p principal) userID() string {
	if p.session != nil && p.session.Name != "" {
		return p.id + ":" + p.session.Name
	}
	return p.id
}

// role reports whether these are a role's credentials.
func (p principal) role() bool { return iam.IsID(iam.RolePrefix, p.id) }

func (p principal) caller() iampolicy.Caller {
	c := iampolicy.Caller{ARN: p.arn, Account: p.account, ID: p.id}
	if p.session != nil {
		c.Session = p.session.Name
	}
	return c
}

// refused is why credentials are not good. The reason is for logs and the authenticator's operator; their sender is
// told the code's own sentence, which says less.
type refused struct {
	code   iamfault.Code
	reason string
}

func (r *refused) Error() string { return string(r.code) + ": " + r.reason }

func invalidToken(format string, args ...any) error {
	return &refused{iamfault.InvalidClientTokenID, fmt.Sprintf(format, args...)}
}

// lookup finds the owner of an access key, and whether everything that it depends on still exists.
func (s *Service) lookup(state *State, keyID, token string, now time.Time) (principal, error) {
	if token == "" {
		return s.find(state, keyID, nil, now)
	}
	if !iam.IsID(iam.SessionKeyPrefix, keyID) {
		return principal{}, invalidToken("the access key is not one that comes with a session token")
	}
	session, err := s.config.Sealer.Open(keyID, token)
	if err != nil {
		return principal{}, invalidToken("%v", err)
	}
	return s.find(state, keyID, &session, now)
}

// find finds the owner of an access key in a state; session is what its token says, nil for a key of a user.
func (s *Service) find(state *State, keyID string, session *Session, now time.Time) (principal, error) {
	if session == nil {
		key, user, err := longLived(state, keyID)
		if err != nil {
			return principal{}, err
		}
		return principal{arn: user.ARN(), account: user.Account, id: user.ID, secret: key.Secret, keyID: key.ID, grants: user.Grants, boundary: user.Boundary}, nil
	}
	if !now.Before(session.Expires) {
		return principal{}, &refused{iamfault.ExpiredToken, "the session ended at " + session.Expires.Format(time.RFC3339)}
	}
	if err := rooted(s, state, *session, now); err != nil {
		return principal{}, err
	}
	p := principal{id: session.PrincipalID, session: session, secret: session.Secret, keyID: keyID}
	var root Instance
	if session.RootInstance != "" {
		var ok bool
		if root, ok = s.config.Instances.Lookup(session.RootInstance); !ok {
			return principal{}, invalidToken("the instance %s does not exist any more", session.RootInstance)
		}
		p.machine = &identity.Machine{ID: session.RootInstance, Cluster: root.Cluster}
	}
	if user, ok := state.UserByID(session.PrincipalID); ok {
		p.arn, p.account, p.grants, p.boundary = user.ARN(), user.Account, user.Grants, user.Boundary
		return p, nil
	}
	role, ok := state.RoleByID(session.PrincipalID)
	if !ok {
		return principal{}, invalidToken("the principal of the session, %s, does not exist any more", session.PrincipalID)
	}
	p.arn, p.account, p.grants, p.boundary = role.SessionARN(session.Name), role.Account, role.Grants, role.Boundary
	if session.Instance != "" {
		if root.PrivateDNSName == "" || session.Instance != session.RootInstance {
			return principal{}, invalidToken("the instance %s has no private DNS name", session.Instance)
		}
		p.instance = &identity.Instance{ID: session.Instance, PrivateDNSName: root.PrivateDNSName}
	}
	return p, nil
}

func longLived(state *State, keyID string) (iam.AccessKey, iam.User, error) {
	key, ok := state.Key(keyID)
	if !ok {
		return iam.AccessKey{}, iam.User{}, invalidToken("there is no such access key")
	}
	user, ok := state.UserByID(key.UserID)
	switch {
	case key.Status != iam.Active:
		return iam.AccessKey{}, iam.User{}, invalidToken("the access key is %s", key.Status)
	case !ok:
		return iam.AccessKey{}, iam.User{}, invalidToken("the user of the access key, %s, does not exist any more", key.UserID)
	case !key.Usable() || user.Account != key.Account:
		return iam.AccessKey{}, iam.User{}, invalidToken("the access key is not whole")
	}
	return key, user, nil
}

// rooted checks what a session was first made with: a session ends with the key, the instance, the pod or the role of a
// control plane at its root.
func rooted(s *Service, state *State, session Session, now time.Time) error {
	switch {
	case session.RootKey != "":
		if _, _, err := longLived(state, session.RootKey); err != nil {
			if no, ok := errors.AsType[*refused](err); ok {
				return invalidToken("the session was made with %s: %s", session.RootKey, no.reason)
			}
			return err
		}
		return nil
	case session.RootInstance != "":
		instance, ok := s.config.Instances.Lookup(session.RootInstance)
		if !ok {
			return invalidToken("the instance %s does not exist any more", session.RootInstance)
		}
		p, ok := state.Profile(s.config.Account, instance.Profile)
		if !ok || p.RoleID != session.RootRole {
			return invalidToken("the instance profile of %s does not carry the role %s any more", session.RootInstance, session.RootRole)
		}
		role, ok := state.RoleByID(session.RootRole)
		if !ok {
			return invalidToken("the role %s of the instance %s does not exist any more", session.RootRole, session.RootInstance)
		}
		if err := s.trustsInstances(role, instance, now); err != nil {
			return invalidToken("%v", err)
		}
		return nil
	case session.RootPod != (PodRoot{}):
		return s.rootedInPod(state, session, now)
	case session.RootIssuer != "":
		return s.rootedInToken(state, session)
	case session.RootCluster != "":
		return rootedInCluster(s, state, session, now)
	case session.RootService != (ServiceRoot{}):
		return rootedInService(s, state, session, now)
	}
	return invalidToken("the session says nothing of where it is from")
}
