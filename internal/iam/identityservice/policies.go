// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

type policyInfo struct {
	PolicyName, PolicyId, Arn, Path string
	DefaultVersionId                string
	AttachmentCount                 int
	PermissionsBoundaryUsageCount   int
	IsAttachable                    bool
	Description                     *string
	CreateDate, UpdateDate          time.Time
	Tags                            *[]tag
}

func (c *call) infoOfPolicy(p iam.Policy, whole bool) policyInfo {
	info := policyInfo{
		PolicyName: p.Name, PolicyId: p.ID, Arn: p.ARN().String(), Path: p.Path, DefaultVersionId: p.Default, IsAttachable: true,
		AttachmentCount: len(c.holders(p.ARN().String())), PermissionsBoundaryUsageCount: len(c.boundedByPolicy(p.ARN().String())), CreateDate: p.Created, UpdateDate: p.Updated,
	}
	if whole {
		info.Description = described(p.Description)
		if len(p.Tags) > 0 {
			list := tagsOf(p.Tags)
			info.Tags = &list
		}
	}
	return info
}

type createPolicyIn struct {
	PolicyName        string
	PolicyDocument    string
	Path, Description *string
	Tags              []tag
}

type policyOut struct{ Policy policyInfo }

type policyIn struct {
	PolicyArn string
}

type listPoliciesIn struct {
	Scope              *string
	OnlyAttached       bool
	PathPrefix, Marker *string
	PolicyUsageFilter  *string
	MaxItems           *int32
}

type listPoliciesOut struct {
	listPage
	Policies []policyInfo
}

func (s *Service) registerPolicies(front *awsfront.Front) {
	register(s, front, apiIAM, "CreatePolicy", writes, func(c *call, in createPolicyIn) (target, error) {
		p := iam.Policy{Account: c.account, Path: pathOr(in.Path), Name: in.PolicyName}
		return tagged(p.ARN().String(), nil, in.Tags).as("policy", p.Name), nil
	}, s.createPolicy)
	register(s, front, apiIAM, "GetPolicy", reads, func(c *call, in policyIn) (target, error) { return s.aboutPolicy(c, in.PolicyArn), nil },
		func(c *call, in policyIn) (*policyOut, error) {
			p, err := s.findPolicy(c, in.PolicyArn)
			if err != nil {
				return nil, err
			}
			return &policyOut{c.infoOfPolicy(p, true)}, nil
		})
	register(s, front, apiIAM, "ListPolicies", reads, func(_ *call, in listPoliciesIn) (target, error) {
		return anything().as("policy path", listedPath(listIn{PathPrefix: in.PathPrefix})), nil
	}, s.listPolicies)
	register(s, front, apiIAM, "DeletePolicy", writes, func(c *call, in policyIn) (target, error) { return s.aboutPolicy(c, in.PolicyArn), nil }, s.deletePolicy)
}

// aboutPolicy is a managed policy, with its tags if it is there.
func (s *Service) aboutPolicy(c *call, name string) target {
	p, err := s.findPolicy(c, name)
	if err != nil {
		return tagged(name, nil, nil).as("policy", name)
	}
	return tagged(p.ARN().String(), p.Tags, nil).as("policy", name)
}

// findPolicy finds AWS's managed policies and those of the caller's account.
func (s *Service) findPolicy(c *call, name string) (iam.Policy, error) {
	a, err := arn.Parse(name)
	if err != nil {
		return iam.Policy{}, iamfault.Errorf(iamfault.ValidationError, "ARN %.200s is not valid.", name)
	}
	p, ok := s.policy(c.state, a.String())
	if !ok || p.Account != iam.AWSAccount && p.Account != c.account {
		return iam.Policy{}, iamfault.Errorf(iamfault.NoSuchEntity, "Policy %.200s does not exist or is not attachable.", name)
	}
	return p, nil
}

// ownPolicy finds one that can be changed.
func (s *Service) ownPolicy(c *call, name string) (iam.Policy, error) {
	p, err := s.findPolicy(c, name)
	if err == nil && p.Account != c.account {
		err = iamfault.Errorf(iamfault.AccessDenied, "%.200s is managed by AWS: it can be neither changed nor deleted", name)
	}
	return p, err
}

func (s *Service) createPolicy(c *call, in createPolicyIn) (*policyOut, error) {
	now := moment(c.now)
	p := iam.Policy{
		Account: c.account, Path: pathOr(in.Path), Name: in.PolicyName, Default: "v1", Created: now, Updated: now, Tags: tagsFrom(in.Tags),
		Versions: []iam.PolicyVersion{{ID: "v1", Document: in.PolicyDocument, Created: now}},
	}
	if in.Description != nil {
		p.Description = *in.Description
	}
	if err := firstError(iam.CheckPolicyName(p.Name), iam.CheckPath(p.Path), iam.CheckDescription(p.Description), iam.CheckTags(p.Tags)); err != nil {
		return nil, err
	}
	if c.state.taken(name(p)) {
		return nil, iamfault.Errorf(iamfault.EntityAlreadyExists, "A policy called %s already exists. Duplicate names are not allowed.", p.Name)
	}
	if _, err := c.read(iampolicy.Managed, in.PolicyDocument); err != nil {
		return nil, err
	}
	var err error
	if p.ID, err = iam.NewID(iam.PolicyPrefix, s.config.Random); err != nil {
		return nil, err
	}
	return &policyOut{c.infoOfPolicy(p, true)}, s.config.Store.Create(c.ctx, p)
}

func (s *Service) listPolicies(c *call, in listPoliciesIn) (*listPoliciesOut, error) {
	scope := "All"
	if in.Scope != nil {
		scope = *in.Scope
	}
	if !slices.Contains([]string{"All", "AWS", "Local"}, scope) {
		return nil, iamfault.Errorf(iamfault.ValidationError, "Scope is %.20q: it must be All, AWS or Local", scope)
	}
	using, err := c.usersBy(in.PolicyUsageFilter)
	if err != nil {
		return nil, err
	}
	var policies []iam.Policy
	if scope != "AWS" {
		policies = c.state.Policies(c.account)
	}
	if scope != "Local" {
		for _, p := range s.managed {
			policies = append(policies, p)
		}
	}
	if in.OnlyAttached || in.PolicyUsageFilter != nil && *in.PolicyUsageFilter == usedAsBoundary {
		policies = slices.DeleteFunc(policies, func(p iam.Policy) bool { return len(using(p.ARN().String())) == 0 })
	}
	policies, page, err := pageOf(c, policies, listIn{in.PathPrefix, in.Marker, in.MaxItems}, func(p iam.Policy) (string, string) { return p.Path, p.ARN().String() })
	out := &listPoliciesOut{listPage: page}
	for _, p := range policies {
		out.Policies = append(out.Policies, c.infoOfPolicy(p, false))
	}
	return out, err
}

func (s *Service) deletePolicy(c *call, in policyIn) (*none, error) {
	p, err := s.ownPolicy(c, in.PolicyArn)
	if err != nil {
		return nil, err
	}
	if len(c.holders(p.ARN().String()))+len(c.boundedByPolicy(p.ARN().String())) > 0 {
		return nil, iamfault.Errorf(iamfault.DeleteConflict, "Cannot delete a policy attached to entities.")
	}
	if len(p.Versions) > 1 {
		return nil, iamfault.Errorf(iamfault.DeleteConflict, "This policy has more than one version. Before you delete a policy, you must delete the policy's versions. "+
			"The default version is deleted with the policy.")
	}
	return nil, s.config.Store.Delete(c.ctx, c.state, p)
}

// encodeDocument writes a policy document as IAM's answers carry it: percent-encoded, a space as %20.
func encodeDocument(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }
