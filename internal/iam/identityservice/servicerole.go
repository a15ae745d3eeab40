// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"fmt"
	"strings"

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
	state, err := s.config.Store.State()
	if err != nil {
		return away(err)
	}
	wanted, err := arn.Parse(in.Role)
	path, name, ok := wanted.Role()
	if err != nil || !ok || wanted.Account != s.config.Account {
		return fmt.Errorf("%.200q is not the ARN of a role of the account", in.Role)
	}
	role, ok := state.Role(wanted.Account, name)
	if !ok || role.Path != path {
		return fmt.Errorf("there is no role %s", in.Role)
	}
	now := s.config.Now()
	from := map[string][]string{"aws:sourceaccount": {s.config.Account}, "aws:sourcearn": {in.Source}}
	if err := s.trusts(role, iampolicy.Caller{Service: in.Service}, actionAssume, from, now); err != nil {
		return fmt.Errorf("the trust policy of the role %s does not let %s do %s: %w", role.Name, in.Service, actionAssume, err)
	}
	session := Session{PrincipalID: role.ID, Name: sessionOf(in.Service), Issued: now, Expires: now.Add(iam.DefaultAssume)}
	conditions := map[string][]string{}
	for key, values := range in.Conditions {
		conditions[strings.ToLower(key)] = values
	}
	return withCause(s.permit(&call{
		admitted: admitted{
			principal: principal{arn: role.SessionARN(session.Name), account: role.Account, id: role.ID, session: &session, grants: role.Grants, boundary: role.Boundary},
			region:    s.config.Region, now: now, secure: true,
		},
		ctx: ctx, state: state, record: &awsfront.Record{},
	}, in.Action, target{resource: in.Resource, context: conditions}))
}

// sessionOf is the name of a service's session: that of fis.amazonaws.com is fis.
func sessionOf(service string) string {
	name, _, _ := strings.Cut(service, ".")
	return name
}
