// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"errors"
	"net/http"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/iam/awsquery"
)

// Caller is the sender of a request for one of the account's other services, proven by its signature.
type Caller struct {
	admitted admitted
	holder   arn.ARN
}

// ARN is the user's, or the session's of a role.
func (c Caller) ARN() arn.ARN { return c.admitted.arn }

// Principal is the ARN of the user or role. All keys of a user and all sessions of a role have the same.
func (c Caller) Principal() arn.ARN { return c.holder }

// Account is the caller's.
func (c Caller) Account() string { return c.admitted.account }

// Instance is the id of the instance whose own credentials, those of instance metadata, the request was signed with; empty for any other caller.
func (c Caller) Instance() string {
	if c.admitted.instance == nil {
		return ""
	}
	return c.admitted.instance.ID
}

// errNotOurs is a defect of the program.
var errNotOurs = errors.New("the caller did not come in here")

// Front makes the front of the account's AWS APIs: the service is its gate, and answers STS and IAM. Others register their actions there.
func (s *Service) Front(c awsfront.Config) (*awsfront.Front, error) {
	c.Gate, c.Identity = s, s.query
	if c.Now == nil {
		c.Now = s.config.Now
	}
	return awsfront.New(c)
}

// refuse has the actions of STS and IAM that the account does not have answered with the reason that the list gives.
func (s *Service) refuse() {
	for _, service := range awsactions.Services() {
		for _, api := range []awsquery.API{awsquery.STS(), awsquery.IAM()} {
			if api.Name != service.Name {
				continue
			}
			for _, action := range service.Actions {
				if action.Mark != awsactions.Refused {
					continue
				}
				s.query.Handle(api, action.Name, func(context.Context, awsquery.Call) (any, error) {
					return nil, awsquery.Errorf(awsquery.UnsupportedOperation, "%s", action.Reason)
				})
			}
		}
	}
}

// Admit finds the sender of a request for a service. The body is what was read of the request's, to the end. Refusals are *awsfault.Error, with
// the codes of STS and IAM.
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

// Authorize asks the caller's policies, as they are now, about an action such as eks:DescribeCluster and a resource, which is an ARN or "*".
// The conditions are those of the request and the resource beside the global ones, by their names in lower case. Refusals are
// *awsfault.Error.
func (s *Service) Authorize(c awsfront.Caller, action, resource string, conditions map[string][]string) error {
	caller, ok := c.(Caller)
	if !ok {
		return errNotOurs
	}
	state, err := s.config.Store.State()
	if err != nil {
		return away(err)
	}
	return s.permit(&call{admitted: caller.admitted, state: state}, action, target{resource: resource, context: conditions})
}
