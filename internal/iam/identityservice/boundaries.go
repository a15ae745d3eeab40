// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"slices"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

// boundaryInfo is a permissions boundary on the wire. There is one type of them.
type boundaryInfo struct{ PermissionsBoundaryType, PermissionsBoundaryArn string }

func infoOfBoundary(policy string) *boundaryInfo {
	if policy == "" {
		return nil
	}
	return &boundaryInfo{"PermissionsBoundaryPolicy", policy}
}

type putUserBoundaryIn struct {
	UserName            string
	PermissionsBoundary string
}

type putRoleBoundaryIn struct {
	RoleName            string
	PermissionsBoundary string
}

func (s *Service) registerBoundaries(front *awsfront.Front) {
	// The condition key is the boundary that would be, or the one that goes.
	register(s, front, apiIAM, "PutUserPermissionsBoundary", writes, func(c *call, in putUserBoundaryIn) (target, error) {
		return boundedBy(c.aboutUser(in.UserName), &in.PermissionsBoundary), nil
	}, func(c *call, in putUserBoundaryIn) (*none, error) {
		return nil, s.setBoundary(c, subject{user: in.UserName}, in.PermissionsBoundary)
	})
	register(s, front, apiIAM, "PutRolePermissionsBoundary", writes, func(c *call, in putRoleBoundaryIn) (target, error) {
		return boundedBy(c.aboutRole(in.RoleName), &in.PermissionsBoundary), nil
	}, func(c *call, in putRoleBoundaryIn) (*none, error) {
		return nil, s.setBoundary(c, subject{role: in.RoleName}, in.PermissionsBoundary)
	})
	register(s, front, apiIAM, "DeleteUserPermissionsBoundary", writes, func(c *call, in requiredUserIn) (target, error) {
		return boundedBy(c.aboutUser(in.UserName), c.boundaryOf(subject{user: in.UserName})), nil
	}, func(c *call, in requiredUserIn) (*none, error) {
		return nil, s.dropBoundary(c, subject{user: in.UserName})
	})
	register(s, front, apiIAM, "DeleteRolePermissionsBoundary", writes, func(c *call, in roleIn) (target, error) {
		return boundedBy(c.aboutRole(in.RoleName), c.boundaryOf(subject{role: in.RoleName})), nil
	}, func(c *call, in roleIn) (*none, error) {
		return nil, s.dropBoundary(c, subject{role: in.RoleName})
	})
}

// boundedBy adds the condition key by which a policy that delegates the making of roles sees to it that these are
// bounded.
func boundedBy(t target, policy *string) target {
	if policy != nil && *policy != "" {
		t.context["iam:permissionsboundary"] = []string{*policy}
	}
	return t
}

// boundaryOf is the boundary of a user or role; nil without.
func (c *call) boundaryOf(of subject) *string {
	if of.role != "" {
		if r, ok := c.state.Role(c.account, of.role); ok {
			return &r.Boundary
		}
		return nil
	}
	if u, ok := c.state.User(c.account, of.user); ok {
		return &u.Boundary
	}
	return nil
}

// newBoundary is the ARN of a policy that is to be a boundary; empty if none is asked for.
func (s *Service) newBoundary(c *call, policy *string) (string, error) {
	if policy == nil {
		return "", nil
	}
	if _, err := arn.Parse(*policy); err != nil {
		return "", iamfault.Errorf(iamfault.ValidationError, "ARN %.200s is not valid.", *policy)
	}
	p, err := s.findPolicy(c, *policy)
	if err != nil {
		return "", iamfault.Errorf(iamfault.NoSuchEntity, "Scope ARN: %.200s does not exist or is not attachable.", *policy)
	}
	return p.ARN().String(), nil
}

func (s *Service) setBoundary(c *call, of subject, policy string) error {
	boundary, err := s.newBoundary(c, &policy)
	if err != nil {
		return err
	}
	return s.writeBoundary(c, of, boundary)
}

func (s *Service) dropBoundary(c *call, of subject) error {
	if _, err := c.changeable(of); err != nil {
		return err
	}
	if had := c.boundaryOf(of); had == nil || *had == "" {
		return iamfault.Errorf(iamfault.NoSuchEntity, "%.128s has no permissions boundary.", of.user+of.role)
	}
	return s.writeBoundary(c, of, "")
}

func (s *Service) writeBoundary(c *call, of subject, boundary string) error {
	if of.role != "" {
		r, err := c.changeableRole(of.role)
		if err != nil {
			return err
		}
		r.Boundary = boundary
		return s.config.Store.Update(c.ctx, c.state, r)
	}
	u, err := c.user(of.user)
	if err != nil {
		return err
	}
	u.Boundary = boundary
	return s.config.Store.Update(c.ctx, c.state, u)
}

// boundary reads the policy that bounds a user or role; nil without a boundary. If the policy cannot be found or read,
// it is an error, and nothing is allowed.
func (s *Service) boundary(state *State, name string) (*iampolicy.Named, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // no boundary is not an error
	}
	policy, ok := s.policy(state, name)
	text, has := policy.Document()
	if !ok || !has {
		return nil, iamfault.Errorf(iamfault.AccessDenied, "the permissions boundary %s cannot be found, and so nothing is allowed: put another, or delete it", name)
	}
	var read []iampolicy.Named
	if err := s.add(&read, iampolicy.Managed, name, text); err != nil {
		return nil, err
	}
	return &read[0], nil
}

// boundedByPolicy are the users and roles of the caller's account whose boundary a policy is.
func (c *call) boundedByPolicy(policy string) []policyHolder {
	var all []policyHolder
	for _, u := range c.state.users {
		if u.Account == c.account && u.Boundary == policy {
			all = append(all, holderOfUser(u))
		}
	}
	for _, r := range c.state.roles {
		if r.Account == c.account && r.Boundary == policy {
			all = append(all, holderOfRole(r))
		}
	}
	return all
}

func holderOfUser(u iam.User) policyHolder { return policyHolder{"User", u.Path, u.Name, u.ID} }

func holderOfRole(r iam.Role) policyHolder { return policyHolder{"Role", r.Path, r.Name, r.ID} }

// usedAsBoundary is a PolicyUsageFilter.
const usedAsBoundary = "PermissionsBoundary"

// usersBy returns the users and roles that use a policy in the way that a PolicyUsageFilter says, or in either way
// without.
func (c *call) usersBy(filter *string) (func(policy string) []policyHolder, error) {
	switch {
	case filter == nil:
		return func(policy string) []policyHolder {
			all := c.holders(policy)
			for _, h := range c.boundedByPolicy(policy) {
				if !slices.Contains(all, h) {
					all = append(all, h)
				}
			}
			return all
		}, nil
	case *filter == "PermissionsPolicy":
		return c.holders, nil
	case *filter == usedAsBoundary:
		return c.boundedByPolicy, nil
	}
	return nil, iamfault.Errorf(iamfault.ValidationError, "PolicyUsageFilter is %.40q: it must be PermissionsPolicy or PermissionsBoundary", *filter)
}
