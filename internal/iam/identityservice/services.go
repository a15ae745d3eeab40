// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"net/http"

	"muster.dev/muster/internal/aws/arn"
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

// Outcome is what the log is to tell of a request. Nothing in it may be a secret.
type Outcome struct {
	RequestID, Action, Resource string
	Code, Message               string // of a refusal
	Cause                       error
}

// Handle has a handler answer the requests that are signed for a service, whose signature it gives to Admit. Call it before the first request.
func (s *Service) Handle(service string, handler http.Handler) { s.services[service] = handler }

// HandleUnsigned has a function say for which service a request without a signature is, by the request and, if it is a form, its body. Call it before the
// first request.
func (s *Service) HandleUnsigned(service func(r *http.Request, form []byte) string) {
	s.unsigned = service
}

// Refuse has an action of STS or IAM that nobody does answered with the reason. Call it before the first request.
func (s *Service) Refuse(service, action, reason string) {
	for _, api := range []awsquery.API{awsquery.STS(), awsquery.IAM()} {
		if api.Name == service {
			s.query.Handle(api, action, func(context.Context, awsquery.Call) (any, error) {
				return nil, awsquery.Errorf(awsquery.UnsupportedOperation, "%s", reason)
			})
		}
	}
}

// Admit finds the sender of a request for a service. The body is what was read of the request's, to the end. Refusals are *awsfault.Error, with
// the codes of STS and IAM.
func (s *Service) Admit(r *http.Request, service string, body []byte) (Caller, error) {
	a, err := s.sender(r.Context(), r, service, body)
	if err != nil {
		return Caller{}, err
	}
	c := Caller{admitted: a, holder: a.arn}
	state, err := s.config.Store.State()
	if err != nil {
		return Caller{}, away(err)
	}
	if role, ok := state.RoleByID(a.id); ok {
		c.holder = role.ARN()
	}
	return c, nil
}

// Authorize asks the caller's policies, as they are now, about an action such as eks:DescribeCluster and a resource, which is an ARN or "*".
// The conditions are those of the request and the resource beside the global ones, by their names in lower case. Refusals are
// *awsfault.Error.
func (s *Service) Authorize(c Caller, action, resource string, conditions map[string][]string) error {
	state, err := s.config.Store.State()
	if err != nil {
		return away(err)
	}
	return s.permit(&call{admitted: c.admitted, state: state}, action, target{resource: resource, context: conditions})
}

// Report has the log tell the outcome of a request that Handle's handler answered.
func Report(ctx context.Context, o Outcome) {
	entry := lineOf(ctx)
	entry.requestID, entry.action, entry.target, entry.code, entry.message = o.RequestID, o.Action, o.Resource, o.Code, o.Message
	if o.Cause != nil {
		entry.cause = o.Cause
	}
}
