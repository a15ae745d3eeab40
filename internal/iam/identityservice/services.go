// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"errors"
	"net/http"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfront"
)

// Caller is the sender of a request for one of the account's services, proven by its signature.
type Caller struct {
	admitted admitted
	holder   arn.ARN
	within   *call // of STS or IAM, once it has begun
}

// ARN is the user's, or the session's of a role.
func (c Caller) ARN() arn.ARN { return c.admitted.arn }

// Principal is the ARN of the user or role. All keys of a user and all sessions of a role have the same.
func (c Caller) Principal() arn.ARN { return c.holder }

// Account is the caller's.
func (c Caller) Account() string { return c.admitted.account }

// Instance is the id of the instance whose own credentials, those of instance metadata, the request was signed with;
// empty for any other caller.
func (c Caller) Instance() string {
	if c.admitted.instance == nil {
		return ""
	}
	return c.admitted.instance.ID
}

// errNotOurs is a defect of the program.
var errNotOurs = errors.New("the caller did not come in here")

// Front makes the front of the account's AWS APIs: the service is its gate, and has registered the actions of STS and
// IAM. Others register theirs there.
func (s *Service) Front(c awsfront.Config) (*awsfront.Front, error) {
	c.Gate = s
	if c.Now == nil {
		c.Now = s.config.Now
	}
	front, err := awsfront.New(c)
	if err != nil {
		return nil, err
	}
	for _, register := range []func(*awsfront.Front){
		s.registerSTS, s.registerUsers, s.registerKeys, s.registerRoles, s.registerProfiles, s.registerPolicies, s.registerPolicyVersions, s.registerPolicyHolders,
		s.registerGrants, s.registerProviders, s.registerTags, s.registerLinkedRoles, s.registerAbsent, s.registerBoundaries, s.registerSimulations,
		s.registerContextKeys, s.registerAccount,
	} {
		register(front)
	}
	return front, nil
}

// Admit finds the sender of a request for a service. The body is what was read of the request's, to the end. Refusals
// are *awsfault.Error, with the codes of STS and IAM.
func (s *Service) Admit(r *http.Request, service string, body []byte) (awsfront.Caller, error) {
	a, err := s.sender(r.Context(), r, service, body)
	if err != nil {
		return nil, err
	}
	c := Caller{admitted: a, holder: a.arn}
	state, err := s.config.Store.State()
	if err != nil {
		return nil, away(err)
	}
	if role, ok := state.RoleByID(a.id); ok {
		c.holder = role.ARN()
	}
	return c, nil
}

// Authorize asks the policies of the caller about an action such as eks:DescribeCluster and a resource, which is an ARN
// or "*". The caller's key and policies are looked up anew. The conditions are those of the request and the resource
// beside the global ones, by their names in lower case. Refusals are *awsfault.Error. A request of STS or IAM is decided by the state that it works on.
func (s *Service) Authorize(by awsfront.Caller, action string, about awsfront.Target) error {
	caller, ok := by.(Caller)
	if !ok {
		return errNotOurs
	}
	t := target{resource: about.Resource, context: about.Conditions, shown: about.Shown, policy: about.Policy}
	if caller.within != nil {
		return answerable(s.authorize(caller.within, action, t))
	}
	state, err := s.config.Store.State()
	if err != nil {
		return away(err)
	}
	c := &call{admitted: caller.admitted, state: state}
	if c.principal, err = s.find(state, c.keyID, c.session, c.now); err != nil { // the key may have ended since
		return badToken(err)
	}
	return s.permit(c, action, t)
}
