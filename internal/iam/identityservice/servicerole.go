// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

// RoleOfService is a role of the account that a service of AWS acts with, and what it would do.
type RoleOfService struct {
	Role, Service string // the role's ARN; the service as policies name it, such as fis.amazonaws.com
	// Source is the ARN of the resource that the service acts for, as trust policies name it by aws:SourceArn.
	Source string
	// Action and Resource are what IAM is asked about; the conditions are those of the resource, by their names in any case.
	Action, Resource string
	Conditions       map[string][]string
}

// CheckRole says in one line why a service may not do something with a role; nil if it may. The role's trust policy must
// let the service in, and its own policies must allow the action, as for a session of the service.
func CheckRole(ctx context.Context, s *Service, in RoleOfService) error {
	caller, state, err := serviceCaller(s, in)
	if err != nil {
		return err
	}
	conditions := map[string][]string{}
	for key, values := range in.Conditions {
		conditions[strings.ToLower(key)] = values
	}
	return withCause(s.permit(&call{admitted: caller.admitted, ctx: ctx, state: state, record: &awsfront.Record{}}, in.Action, target{resource: in.Resource, context: conditions}))
}

// ServiceCaller is a service as the caller of actions, in a session of a role that was passed to the service, whose trust policy
// must let the service in. It is called for each action, as [Resume] is. Action, Resource and Conditions are not used.
func ServiceCaller(s *Service, in RoleOfService) (Caller, error) {
	caller, _, err := serviceCaller(s, in)
	return caller, err
}

func serviceCaller(s *Service, in RoleOfService) (Caller, *State, error) {
	state, err := s.config.Store.State()
	if err != nil {
		return Caller{}, nil, away(err)
	}
	wanted, err := arn.Parse(in.Role)
	path, name, ok := wanted.Role()
	if err != nil || !ok || wanted.Account != s.config.Account {
		return Caller{}, nil, fmt.Errorf("%.200q is not the ARN of a role of the account", in.Role)
	}
	role, ok := state.Role(wanted.Account, name)
	if !ok || role.Path != path {
		return Caller{}, nil, fmt.Errorf("there is no role %s", in.Role)
	}
	now := s.config.Now()
	session := Session{
		PrincipalID: role.ID, Name: sessionOf(in.Service), Issued: now, Expires: now.Add(iam.DefaultAssume), RootRole: role.ID, RootService: ServiceRoot{Service: in.Service, Source: in.Source},
	}
	if err := trustsService(s, role, session.RootService, now); err != nil {
		return Caller{}, nil, err
	}
	return Caller{admitted: admitted{
		principal: principal{arn: role.SessionARN(session.Name), account: role.Account, id: role.ID, session: &session, grants: role.Grants, boundary: role.Boundary},
		region:    s.config.Region, now: now, secure: true,
	}, holder: role.ARN()}, state, nil
}

// ServiceRoot is the service that a session of a role is a service's own by, and the ARN of the resource that the service acts for.
type ServiceRoot struct{ Service, Source string }

// trustsService says why a role's trust policy does not let a service in; nil if it does.
func trustsService(s *Service, role iam.Role, root ServiceRoot, now time.Time) error {
	from := map[string][]string{"aws:sourceaccount": {s.config.Account}, "aws:sourcearn": {root.Source}}
	if err := s.trusts(role, iampolicy.Caller{Service: root.Service}, actionAssume, from, now); err != nil {
		return fmt.Errorf("the trust policy of the role %s does not let %s do %s: %w", role.Name, root.Service, actionAssume, err)
	}
	return nil
}

// rootedInService checks that the role of a service's session is there, and lets the service in.
func rootedInService(s *Service, state *State, session Session, now time.Time) error {
	role, ok := state.RoleByID(session.RootRole)
	if !ok {
		return invalidToken("the role %s of %s does not exist any more", session.RootRole, session.RootService.Service)
	}
	if err := trustsService(s, role, session.RootService, now); err != nil {
		return invalidToken("%v", err)
	}
	return nil
}

// sessionOf is the name of a service's session: that of fis.amazonaws.com is fis.
func sessionOf(service string) string {
	name, _, _ := strings.Cut(service, ".")
	return name
}
