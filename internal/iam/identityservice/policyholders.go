// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
)

type listHoldersIn struct {
	PolicyArn                     string
	EntityFilter                  *string
	PathPrefix, PolicyUsageFilter *string
	Marker                        *string
	MaxItems                      *int32
}

type holdingUser struct{ UserName, UserId string }

type holdingRole struct{ RoleName, RoleId string }

type listHoldersOut struct {
	listPage
	PolicyGroups []none
	PolicyUsers  []holdingUser
	PolicyRoles  []holdingRole
}

// policyHolder is a user or a role that a policy is attached to.
type policyHolder struct{ kind, path, name, id string }

func (s *Service) registerPolicyHolders(front *awsfront.Front) {
	register(s, front, apiIAM, "ListEntitiesForPolicy", reads, func(c *call, in listHoldersIn) (target, error) { return s.aboutPolicy(c, in.PolicyArn), nil }, s.listHolders)
}

// listHolders lists the users, roles and groups that have a policy. Before the policy can be deleted, it must be
// detached from all of them.
func (s *Service) listHolders(c *call, in listHoldersIn) (*listHoldersOut, error) {
	p, err := s.findPolicy(c, in.PolicyArn)
	if err != nil {
		return nil, err
	}
	using, err := c.usersBy(in.PolicyUsageFilter)
	if err != nil {
		return nil, err
	}
	if kinds := []string{"User", "Role", "Group", "LocalManagedPolicy", "AWSManagedPolicy"}; in.EntityFilter != nil && !slices.Contains(kinds, *in.EntityFilter) {
		return nil, iamfault.Errorf(iamfault.ValidationError, "EntityFilter is %.40q: it must be one of %s", *in.EntityFilter, strings.Join(kinds, ", "))
	}
	all := slices.DeleteFunc(using(p.ARN().String()), func(h policyHolder) bool { return in.EntityFilter != nil && h.kind != *in.EntityFilter })
	page, more, err := pageOf(c, all, listIn{in.PathPrefix, in.Marker, in.MaxItems}, func(h policyHolder) (string, string) { return h.path, h.kind + "/" + h.name })
	out := &listHoldersOut{listPage: more}
	for _, h := range page {
		if h.kind == "User" {
			out.PolicyUsers = append(out.PolicyUsers, holdingUser{h.name, h.id})
		} else {
			out.PolicyRoles = append(out.PolicyRoles, holdingRole{h.name, h.id})
		}
	}
	return out, err
}

// holders are the users and roles of the caller's account that a policy is attached to.
func (c *call) holders(arn string) []policyHolder {
	var all []policyHolder
	for _, u := range c.state.users {
		if u.Account == c.account && slices.Contains(u.Attached, arn) {
			all = append(all, policyHolder{"User", u.Path, u.Name, u.ID})
		}
	}
	for _, r := range c.state.roles {
		if r.Account == c.account && slices.Contains(r.Attached, arn) {
			all = append(all, policyHolder{"Role", r.Path, r.Name, r.ID})
		}
	}
	return all
}
