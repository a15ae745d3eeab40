// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"time"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
)

type profileInfo struct {
	Path, InstanceProfileName, InstanceProfileId, Arn string
	CreateDate                                        time.Time
	Roles                                             []roleInfo
	Tags                                              *[]tag
}

func (c *call) infoOfProfile(p iam.InstanceProfile, tags bool) profileInfo {
	info := profileInfo{Path: p.Path, InstanceProfileName: p.Name, InstanceProfileId: p.ID, Arn: p.ARN().String(), CreateDate: p.Created}
	if r, ok := c.state.RoleByID(p.RoleID); ok {
		info.Roles = append(info.Roles, c.infoOfRole(r, false))
	}
	if tags && len(p.Tags) > 0 {
		list := tagsOf(p.Tags)
		info.Tags = &list
	}
	return info
}

type createProfileIn struct {
	InstanceProfileName string
	Path                *string
	Tags                []tag
}

type profileOut struct{ InstanceProfile profileInfo }

type profileIn struct {
	InstanceProfileName string
}

type profileRoleIn struct {
	InstanceProfileName string
	RoleName            string
}

type listProfilesOut struct {
	listPage
	InstanceProfiles []profileInfo
}

type listForRoleIn struct {
	RoleName string
	Marker   *string
	MaxItems *int32
}

func (s *Service) registerProfiles(front *awsfront.Front) {
	register(s, front, apiIAM, "CreateInstanceProfile", writes, func(c *call, in createProfileIn) (target, error) {
		p := iam.InstanceProfile{Account: c.account, Path: pathOr(in.Path), Name: in.InstanceProfileName}
		return tagged(p.ARN().String(), nil, in.Tags), nil
	}, s.createProfile)
	register(s, front, apiIAM, "GetInstanceProfile", reads, func(c *call, in profileIn) (target, error) { return c.aboutProfile(in.InstanceProfileName), nil },
		func(c *call, in profileIn) (*profileOut, error) {
			p, err := c.profile(in.InstanceProfileName)
			if err != nil {
				return nil, err
			}
			return &profileOut{c.infoOfProfile(p, true)}, nil
		})
	register(s, front, apiIAM, "ListInstanceProfiles", reads, func(c *call, in listIn) (target, error) {
		return target{resource: iam.InstanceProfile{Account: c.account, Path: listedPath(in)}.ARN().String()}, nil
	}, func(c *call, in listIn) (*listProfilesOut, error) {
		return c.listProfiles(c.state.Profiles(c.account), in)
	})
	register(s, front, apiIAM, "ListInstanceProfilesForRole", reads, func(c *call, in listForRoleIn) (target, error) { return c.aboutRole(in.RoleName), nil },
		func(c *call, in listForRoleIn) (*listProfilesOut, error) {
			r, err := c.findRole(in.RoleName)
			if err != nil {
				return nil, err
			}
			return c.listProfiles(c.state.ProfilesOf(r.ID), listIn{Marker: in.Marker, MaxItems: in.MaxItems})
		})
	register(s, front, apiIAM, "DeleteInstanceProfile", writes, func(c *call, in profileIn) (target, error) { return c.aboutProfile(in.InstanceProfileName), nil }, s.deleteProfile)
	register(s, front, apiIAM, "AddRoleToInstanceProfile", writes, func(c *call, in profileRoleIn) (target, error) { return c.aboutProfile(in.InstanceProfileName), nil }, s.addRole)
	register(s, front, apiIAM, "RemoveRoleFromInstanceProfile", writes, func(c *call, in profileRoleIn) (target, error) { return c.aboutProfile(in.InstanceProfileName), nil }, s.removeRole)
}

func (c *call) profile(name string) (iam.InstanceProfile, error) {
	p, ok := c.state.Profile(c.account, name)
	if !ok {
		return p, iamfault.Errorf(iamfault.NoSuchEntity, "Instance Profile %.128s cannot be found.", name)
	}
	return p, nil
}

func (c *call) aboutProfile(name string) target {
	p, ok := c.state.Profile(c.account, name)
	if !ok {
		p = iam.InstanceProfile{Account: c.account, Path: "/", Name: name}
	}
	return tagged(p.ARN().String(), p.Tags, nil).as("instance profile", name)
}

func (c *call) listProfiles(profiles []iam.InstanceProfile, in listIn) (*listProfilesOut, error) {
	profiles, page, err := pageOf(c, profiles, in, func(p iam.InstanceProfile) (string, string) { return p.Path, p.Name })
	out := &listProfilesOut{listPage: page}
	for _, p := range profiles {
		out.InstanceProfiles = append(out.InstanceProfiles, c.infoOfProfile(p, false))
	}
	return out, err
}

func (s *Service) createProfile(c *call, in createProfileIn) (*profileOut, error) {
	p := iam.InstanceProfile{Account: c.account, Path: pathOr(in.Path), Name: in.InstanceProfileName, Created: moment(c.now), Tags: tagsFrom(in.Tags)}
	if err := firstError(iam.CheckProfileName(p.Name), iam.CheckPath(p.Path), iam.CheckTags(p.Tags)); err != nil {
		return nil, err
	}
	if c.state.taken(name(p)) {
		return nil, iamfault.Errorf(iamfault.EntityAlreadyExists, "Instance Profile %s already exists.", p.Name)
	}
	var err error
	if p.ID, err = iam.NewID(iam.ProfilePrefix, s.config.Random); err != nil {
		return nil, err
	}
	return &profileOut{c.infoOfProfile(p, true)}, s.config.Store.Create(c.ctx, p)
}

func (s *Service) deleteProfile(c *call, in profileIn) (*none, error) {
	p, err := c.profile(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	if p.RoleID != "" {
		return nil, iamfault.Errorf(iamfault.DeleteConflict, "Cannot delete entity, must remove roles from instance profile first.")
	}
	return nil, s.config.Store.Delete(c.ctx, c.state, p)
}

func (s *Service) addRole(c *call, in profileRoleIn) (*none, error) {
	p, err := c.profile(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	r, err := c.changeableRole(in.RoleName)
	if err != nil {
		return nil, err
	}
	if p.RoleID != "" {
		return nil, iamfault.Errorf(iamfault.LimitExceeded, "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
	}
	// To put a role into a profile is to give it to machines: that takes iam:PassRole on the role, as on AWS.
	pass := tagged(r.ARN().String(), r.Tags, nil)
	pass.context["iam:passedtoservice"] = []string{serviceEC2}
	if err := s.authorize(c, "iam:PassRole", pass); err != nil {
		return nil, err
	}
	p.RoleID, p.RoleName = r.ID, r.Name
	return nil, s.config.Store.Update(c.ctx, c.state, p)
}

func (s *Service) removeRole(c *call, in profileRoleIn) (*none, error) {
	p, err := c.profile(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	if p.RoleID == "" || p.RoleName != in.RoleName {
		return nil, iamfault.Errorf(iamfault.NoSuchEntity, "The role with name %.128s is not in instance profile %s.", in.RoleName, p.Name)
	}
	p.RoleID, p.RoleName = "", ""
	return nil, s.config.Store.Update(c.ctx, c.state, p)
}
