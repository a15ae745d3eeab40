// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"slices"
	"time"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

type createVersionIn struct {
	PolicyArn      string
	PolicyDocument string
	SetAsDefault   bool
}

type policyVersionIn struct {
	PolicyArn string
	VersionId string
}

type policyVersionInfo struct {
	Document         *string
	VersionId        string
	IsDefaultVersion bool
	CreateDate       time.Time
}

type policyVersionOut struct{ PolicyVersion policyVersionInfo }

type listVersionsIn struct {
	PolicyArn string
	Marker    *string
	MaxItems  *int32
}

type listVersionsOut struct {
	listPage
	Versions []policyVersionInfo
}

func (s *Service) registerPolicyVersions(front *awsfront.Front) {
	about := func(c *call, in policyVersionIn) (target, error) { return s.aboutPolicy(c, in.PolicyArn), nil }
	register(s, front, apiIAM, "CreatePolicyVersion", writes, func(c *call, in createVersionIn) (target, error) { return s.aboutPolicy(c, in.PolicyArn), nil }, s.createVersion)
	register(s, front, apiIAM, "SetDefaultPolicyVersion", writes, about, s.setDefaultVersion)
	register(s, front, apiIAM, "DeletePolicyVersion", writes, about, s.deleteVersion)
	register(s, front, apiIAM, "GetPolicyVersion", reads, about, s.policyVersion)
	register(s, front, apiIAM, "ListPolicyVersions", reads, func(c *call, in listVersionsIn) (target, error) { return s.aboutPolicy(c, in.PolicyArn), nil }, s.policyVersions)
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
	return &policyVersionOut{policyVersionInfo{nil, v.ID, in.SetAsDefault, v.Created}}, s.config.Store.Update(c.ctx, c.state, p)
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
	return iamfault.Errorf(iamfault.NoSuchEntity, "Policy %s version %.20s does not exist or is not attachable.", in.PolicyArn, in.VersionId)
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
		return nil, iamfault.Errorf(iamfault.DeleteConflict, "Cannot delete the default version of a policy.")
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
			return &policyVersionOut{policyVersionInfo{new(encodeDocument(v.Document)), v.ID, v.ID == p.Default, v.Created}}, nil
		}
	}
	return nil, noVersion(in)
}

func (s *Service) policyVersions(c *call, in listVersionsIn) (*listVersionsOut, error) {
	p, err := s.findPolicy(c, in.PolicyArn)
	if err != nil {
		return nil, err
	}
	versions, page, err := pageBy(p.Versions, func(v iam.PolicyVersion) string { return v.ID }, c.markers, in.Marker, in.MaxItems)
	out := &listVersionsOut{listPage: page}
	for _, v := range versions {
		out.Versions = append(out.Versions, policyVersionInfo{nil, v.ID, v.ID == p.Default, v.Created})
	}
	return out, err
}
