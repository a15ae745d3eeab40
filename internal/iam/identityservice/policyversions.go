// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"slices"

	"muster.dev/muster/internal/iam/awsquery"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

type createVersionIn struct {
	PolicyArn      string `query:",required"`
	PolicyDocument string `query:",required"`
	SetAsDefault   bool
}

type policyVersionIn struct {
	PolicyArn string `query:",required"`
	VersionId string `query:",required"`
}

type policyVersionInfo struct {
	Document         string `xml:",omitempty"`
	VersionId        string
	IsDefaultVersion bool
	CreateDate       awsquery.Time
}

type policyVersionOut struct{ PolicyVersion policyVersionInfo }

type listVersionsIn struct {
	PolicyArn string `query:",required"`
	Marker    *string
	MaxItems  *int32
}

type listVersionsOut struct {
	awsquery.Page
	Versions awsquery.List[policyVersionInfo]
}

func (s *Service) registerPolicyVersions(server *awsquery.Server) {
	api := awsquery.IAM()
	about := func(c *call, in policyVersionIn) (target, error) { return s.aboutPolicy(c, in.PolicyArn), nil }
	register(s, server, api, "CreatePolicyVersion", writes, func(c *call, in createVersionIn) (target, error) { return s.aboutPolicy(c, in.PolicyArn), nil }, s.createVersion)
	register(s, server, api, "SetDefaultPolicyVersion", writes, about, s.setDefaultVersion)
	register(s, server, api, "DeletePolicyVersion", writes, about, s.deleteVersion)
	register(s, server, api, "GetPolicyVersion", reads, about, s.policyVersion)
	register(s, server, api, "ListPolicyVersions", reads, func(c *call, in listVersionsIn) (target, error) { return s.aboutPolicy(c, in.PolicyArn), nil }, s.policyVersions)
}

func (s *Service) createVersion(c *call, in createVersionIn) (*policyVersionOut, error) {
	p, err := s.ownPolicy(c, in.PolicyArn)
	if err != nil {
		return nil, err
	}
	if _, err := c.read(iampolicy.Managed, in.PolicyDocument); err != nil {
		return nil, err
	}
	v := iam.PolicyVersion{ID: p.NextVersion(), Document: in.PolicyDocument, Created: moment(c.now)}
	if err := p.CheckNewVersion(); err != nil {
		return nil, err
	}
	p.Versions = append(slices.Clone(p.Versions), v)
	if in.SetAsDefault {
		p.Default = v.ID
	}
	p.Updated = v.Created
	return &policyVersionOut{policyVersionInfo{"", v.ID, in.SetAsDefault, awsquery.Time{Time: v.Created}}}, s.config.Store.Update(c.ctx, c.state, p)
}

// ownVersion finds a version that can be changed, by its place.
func (s *Service) ownVersion(c *call, in policyVersionIn) (iam.Policy, int, error) {
	p, err := s.ownPolicy(c, in.PolicyArn)
	if err != nil {
		return p, 0, err
	}
	i := slices.IndexFunc(p.Versions, func(v iam.PolicyVersion) bool { return v.ID == in.VersionId })
	if i < 0 {
		err = noVersion(in)
	}
	return p, i, err
}

func noVersion(in policyVersionIn) error {
	return awsquery.Errorf(awsquery.NoSuchEntity, "Policy %s version %.20s does not exist or is not attachable.", in.PolicyArn, in.VersionId)
}

func (s *Service) setDefaultVersion(c *call, in policyVersionIn) (*none, error) {
	p, i, err := s.ownVersion(c, in)
	if err != nil {
		return nil, err
	}
	p.Default, p.Updated = p.Versions[i].ID, moment(c.now)
	return nil, s.config.Store.Update(c.ctx, c.state, p)
}

func (s *Service) deleteVersion(c *call, in policyVersionIn) (*none, error) {
	p, i, err := s.ownVersion(c, in)
	if err != nil {
		return nil, err
	}
	if p.Versions[i].ID == p.Default {
		return nil, awsquery.Errorf(awsquery.DeleteConflict, "Cannot delete the default version of a policy.")
	}
	p.Versions, p.Updated = slices.Delete(slices.Clone(p.Versions), i, i+1), moment(c.now)
	return nil, s.config.Store.Update(c.ctx, c.state, p)
}

func (s *Service) policyVersion(c *call, in policyVersionIn) (*policyVersionOut, error) {
	p, err := s.findPolicy(c, in.PolicyArn)
	if err != nil {
		return nil, err
	}
	for _, v := range p.Versions {
		if v.ID == in.VersionId {
			return &policyVersionOut{policyVersionInfo{awsquery.EncodeDocument(v.Document), v.ID, v.ID == p.Default, awsquery.Time{Time: v.Created}}}, nil
		}
	}
	return nil, noVersion(in)
}

func (s *Service) policyVersions(c *call, in listVersionsIn) (*listVersionsOut, error) {
	p, err := s.findPolicy(c, in.PolicyArn)
	if err != nil {
		return nil, err
	}
	versions, page, err := awsquery.PageOf(p.Versions, func(v iam.PolicyVersion) string { return v.ID }, c.markers, in.Marker, in.MaxItems)
	out := &listVersionsOut{Page: page}
	for _, v := range versions {
		out.Versions.Members = append(out.Versions.Members, policyVersionInfo{"", v.ID, v.ID == p.Default, awsquery.Time{Time: v.Created}})
	}
	return out, err
}
