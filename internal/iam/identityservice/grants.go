// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"maps"
	"slices"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

// holder is a user or a role, as far as permissions go.
type holder struct {
	grants iam.Grants
	inline iampolicy.Kind
	noun   string
	name   string
	// with is the user or role with other permissions.
	with func(iam.Grants) Entity
}

func (c *call) holderUser(name string) (holder, error) {
	u, err := c.user(name)
	return holder{u.Grants, iampolicy.UserInline, "user", name, func(g iam.Grants) Entity { u.Grants = g; return u }}, err
}

func (c *call) holderRole(name string) (holder, error) {
	r, err := c.findRole(name)
	return holder{r.Grants, iampolicy.RoleInline, "role", name, func(g iam.Grants) Entity { r.Grants = g; return r }}, err
}

// subject is the part of a request that says whose permissions it is about. Each action takes one of the two.
type subject struct{ user, role string }

func (c *call) holder(s subject) (holder, error) {
	if s.role != "" {
		return c.holderRole(s.role)
	}
	return c.holderUser(s.user)
}

// changeable finds a holder whose permissions others than a service may change.
func (c *call) changeable(s subject) (holder, error) {
	if s.role != "" {
		if _, err := c.changeableRole(s.role); err != nil {
			return holder{}, err
		}
	}
	return c.holder(s)
}

func (c *call) about(s subject) target {
	if s.role != "" {
		return c.aboutRole(s.role)
	}
	return c.aboutUser(s.user)
}

type putUserPolicyIn struct {
	UserName       string
	PolicyName     string
	PolicyDocument string
}

type putRolePolicyIn struct {
	RoleName       string
	PolicyName     string
	PolicyDocument string
}

type userPolicyIn struct {
	UserName   string
	PolicyName string
}

type rolePolicyIn struct {
	RoleName   string
	PolicyName string
}

type userPolicyOut struct{ UserName, PolicyName, PolicyDocument string }

type rolePolicyOut struct{ RoleName, PolicyName, PolicyDocument string }

type listPolicyNamesOut struct {
	listPage
	PolicyNames []string
}

type userAttachIn struct {
	UserName  string
	PolicyArn string
}

type roleAttachIn struct {
	RoleName  string
	PolicyArn string
}

type listUserAttachedIn struct {
	UserName           string
	PathPrefix, Marker *string
	MaxItems           *int32
}

type listRoleAttachedIn struct {
	RoleName           string
	PathPrefix, Marker *string
	MaxItems           *int32
}

type attachedPolicy struct{ PolicyName, PolicyArn string }

type listAttachedOut struct {
	listPage
	AttachedPolicies []attachedPolicy
}

func (s *Service) registerGrants(front *awsfront.Front) {
	user, role := func(name string) subject { return subject{user: name} }, func(name string) subject { return subject{role: name} }
	on := func(c *call, of subject) (target, error) { return c.about(of), nil }
	changing := func(c *call, of subject) (target, error) { return boundedBy(c.about(of), c.boundaryOf(of)), nil }
	attaching := func(c *call, of subject, policy string) (target, error) {
		t := boundedBy(c.about(of), c.boundaryOf(of))
		t.context["iam:policyarn"] = []string{policy}
		return t, nil
	}

	register(s, front, apiIAM, "PutUserPolicy", writes, func(c *call, in putUserPolicyIn) (target, error) { return changing(c, user(in.UserName)) },
		func(c *call, in putUserPolicyIn) (*none, error) {
			return nil, s.putInline(c, user(in.UserName), in.PolicyName, in.PolicyDocument)
		})
	register(s, front, apiIAM, "PutRolePolicy", writes, func(c *call, in putRolePolicyIn) (target, error) { return changing(c, role(in.RoleName)) },
		func(c *call, in putRolePolicyIn) (*none, error) {
			return nil, s.putInline(c, role(in.RoleName), in.PolicyName, in.PolicyDocument)
		})
	register(s, front, apiIAM, "GetUserPolicy", reads, func(c *call, in userPolicyIn) (target, error) { return on(c, user(in.UserName)) },
		func(c *call, in userPolicyIn) (*userPolicyOut, error) {
			text, err := c.inline(user(in.UserName), in.PolicyName)
			return &userPolicyOut{in.UserName, in.PolicyName, encodeDocument(text)}, err
		})
	register(s, front, apiIAM, "GetRolePolicy", reads, func(c *call, in rolePolicyIn) (target, error) { return on(c, role(in.RoleName)) },
		func(c *call, in rolePolicyIn) (*rolePolicyOut, error) {
			text, err := c.inline(role(in.RoleName), in.PolicyName)
			return &rolePolicyOut{in.RoleName, in.PolicyName, encodeDocument(text)}, err
		})
	register(s, front, apiIAM, "ListUserPolicies", reads, func(c *call, in listUserThingsIn) (target, error) { return on(c, user(in.UserName)) },
		func(c *call, in listUserThingsIn) (*listPolicyNamesOut, error) {
			return c.listInline(user(in.UserName), in.Marker, in.MaxItems)
		})
	register(s, front, apiIAM, "ListRolePolicies", reads, func(c *call, in listForRoleIn) (target, error) { return on(c, role(in.RoleName)) },
		func(c *call, in listForRoleIn) (*listPolicyNamesOut, error) {
			return c.listInline(role(in.RoleName), in.Marker, in.MaxItems)
		})
	register(s, front, apiIAM, "DeleteUserPolicy", writes, func(c *call, in userPolicyIn) (target, error) { return changing(c, user(in.UserName)) },
		func(c *call, in userPolicyIn) (*none, error) {
			return nil, s.deleteInline(c, user(in.UserName), in.PolicyName)
		})
	register(s, front, apiIAM, "DeleteRolePolicy", writes, func(c *call, in rolePolicyIn) (target, error) { return changing(c, role(in.RoleName)) },
		func(c *call, in rolePolicyIn) (*none, error) {
			return nil, s.deleteInline(c, role(in.RoleName), in.PolicyName)
		})
	register(s, front, apiIAM, "AttachUserPolicy", writes, func(c *call, in userAttachIn) (target, error) { return attaching(c, user(in.UserName), in.PolicyArn) },
		func(c *call, in userAttachIn) (*none, error) {
			return nil, s.attach(c, user(in.UserName), in.PolicyArn)
		})
	register(s, front, apiIAM, "AttachRolePolicy", writes, func(c *call, in roleAttachIn) (target, error) { return attaching(c, role(in.RoleName), in.PolicyArn) },
		func(c *call, in roleAttachIn) (*none, error) {
			return nil, s.attach(c, role(in.RoleName), in.PolicyArn)
		})
	register(s, front, apiIAM, "DetachUserPolicy", writes, func(c *call, in userAttachIn) (target, error) { return attaching(c, user(in.UserName), in.PolicyArn) },
		func(c *call, in userAttachIn) (*none, error) {
			return nil, s.detach(c, user(in.UserName), in.PolicyArn)
		})
	register(s, front, apiIAM, "DetachRolePolicy", writes, func(c *call, in roleAttachIn) (target, error) { return attaching(c, role(in.RoleName), in.PolicyArn) },
		func(c *call, in roleAttachIn) (*none, error) {
			return nil, s.detach(c, role(in.RoleName), in.PolicyArn)
		})
	register(s, front, apiIAM, "ListAttachedUserPolicies", reads, func(c *call, in listUserAttachedIn) (target, error) { return on(c, user(in.UserName)) },
		func(c *call, in listUserAttachedIn) (*listAttachedOut, error) {
			return s.listAttached(c, user(in.UserName), listIn{in.PathPrefix, in.Marker, in.MaxItems})
		})
	register(s, front, apiIAM, "ListAttachedRolePolicies", reads, func(c *call, in listRoleAttachedIn) (target, error) { return on(c, role(in.RoleName)) },
		func(c *call, in listRoleAttachedIn) (*listAttachedOut, error) {
			return s.listAttached(c, role(in.RoleName), listIn{in.PathPrefix, in.Marker, in.MaxItems})
		})
}

func (s *Service) putInline(c *call, of subject, policy, text string) error {
	h, err := c.changeable(of)
	if err != nil {
		return err
	}
	if err := iam.CheckPolicyName(policy); err != nil {
		return err
	}
	if _, err := c.read(h.inline, text); err != nil {
		return err
	}
	inline := maps.Clone(h.grants.Inline)
	if inline == nil {
		inline = map[string]string{}
	}
	inline[policy] = text
	if err := iampolicy.CheckTotal(h.inline, inline); err != nil {
		return err
	}
	return s.config.Store.Update(c.ctx, c.state, h.with(iam.Grants{Attached: h.grants.Attached, Inline: inline}))
}

func (c *call) inline(of subject, policy string) (string, error) {
	h, err := c.holder(of)
	if err != nil {
		return "", err
	}
	text, ok := h.grants.Inline[policy]
	if !ok {
		return "", iamfault.Errorf(iamfault.NoSuchEntity, "The %s policy with name %.128s cannot be found.", h.noun, policy)
	}
	return text, nil
}

func (c *call) listInline(of subject, marker *string, most *int32) (*listPolicyNamesOut, error) {
	h, err := c.holder(of)
	if err != nil {
		return nil, err
	}
	names, page, err := pageBy(slices.Collect(maps.Keys(h.grants.Inline)), func(name string) string { return name }, c.markers, marker, most)
	return &listPolicyNamesOut{listPage: page, PolicyNames: names}, err
}

func (s *Service) deleteInline(c *call, of subject, policy string) error {
	if _, err := c.inline(of, policy); err != nil {
		return err
	}
	h, err := c.changeable(of)
	if err != nil {
		return err
	}
	inline := maps.Clone(h.grants.Inline)
	delete(inline, policy)
	return s.config.Store.Update(c.ctx, c.state, h.with(iam.Grants{Attached: h.grants.Attached, Inline: inline}))
}

func (s *Service) attach(c *call, of subject, policy string) error {
	h, err := c.changeable(of)
	if err != nil {
		return err
	}
	p, err := s.findPolicy(c, policy)
	if err != nil {
		return err
	}
	if p.Path == iam.LinkedRolePath {
		return iamfault.Errorf(iamfault.PolicyNotAttachable, "Cannot attach a Service Role Policy to a Customer Role.")
	}
	arn := p.ARN().String()
	if slices.Contains(h.grants.Attached, arn) {
		return nil
	}
	if err := h.grants.CheckAttach(arn); err != nil {
		return err
	}
	attached := append(slices.Clone(h.grants.Attached), arn)
	return s.config.Store.Update(c.ctx, c.state, h.with(iam.Grants{Attached: attached, Inline: h.grants.Inline}))
}

func (s *Service) detach(c *call, of subject, policy string) error {
	h, err := c.changeable(of)
	if err != nil {
		return err
	}
	i := slices.Index(h.grants.Attached, policy)
	if i < 0 {
		return iamfault.Errorf(iamfault.NoSuchEntity, "Policy %.200s was not found.", policy)
	}
	attached := slices.Delete(slices.Clone(h.grants.Attached), i, i+1)
	return s.config.Store.Update(c.ctx, c.state, h.with(iam.Grants{Attached: attached, Inline: h.grants.Inline}))
}

func (s *Service) listAttached(c *call, of subject, in listIn) (*listAttachedOut, error) {
	h, err := c.holder(of)
	if err != nil {
		return nil, err
	}
	policies := make([]iam.Policy, 0, len(h.grants.Attached))
	for _, arn := range h.grants.Attached {
		if p, ok := s.policy(c.state, arn); ok {
			policies = append(policies, p)
		}
	}
	policies, page, err := pageOf(c, policies, in, func(p iam.Policy) (string, string) { return p.Path, p.ARN().String() })
	out := &listAttachedOut{listPage: page}
	for _, p := range policies {
		out.AttachedPolicies = append(out.AttachedPolicies, attachedPolicy{p.Name, p.ARN().String()})
	}
	return out, err
}
