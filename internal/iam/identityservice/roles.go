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

type roleInfo struct {
	Path, RoleName, RoleId, Arn string
	CreateDate                  time.Time
	AssumeRolePolicyDocument    string
	Description                 *string
	MaxSessionDuration          int32
	Tags                        *[]tag
	PermissionsBoundary         *boundaryInfo
}

func (c *call) infoOfRole(r iam.Role, tags bool) roleInfo {
	info := roleInfo{
		Path: r.Path, RoleName: r.Name, RoleId: r.ID, Arn: r.ARN().String(), CreateDate: r.Created,
		AssumeRolePolicyDocument: encodeDocument(shownTrust(c.state, r.Trust)), Description: described(r.Description),
		MaxSessionDuration: int32(r.MaxSession / time.Second), //nolint:gosec // G115: twelve hours at most
	}
	if tags {
		info.PermissionsBoundary = infoOfBoundary(r.Boundary)
	}
	if tags && len(r.Tags) > 0 {
		list := tagsOf(r.Tags)
		info.Tags = &list
	}
	return info
}

// described is a description as answers have it: none if it is empty.
func described(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// shownTrust is a trust policy with names where the names still are those of the principals that were meant.
func shownTrust(state *State, text string) string {
	document, err := iampolicy.Parse(iampolicy.Trust, text)
	if err != nil {
		return text
	}
	shown, err := document.Shown(state).Text()
	if err != nil {
		return text
	}
	return shown
}

// boundTrust is a trust policy as it is kept: the users and roles that it names are meant by what they are, not by how
// they are called.
func (c *call) boundTrust(text string) (string, error) {
	document, err := c.read(iampolicy.Trust, text)
	if err != nil {
		return "", err
	}
	if document, err = document.Bind(c.state); err != nil {
		return "", err
	}
	return document.Text()
}

type createRoleIn struct {
	RoleName                 string
	AssumeRolePolicyDocument string
	Path, Description        *string
	MaxSessionDuration       *int32
	Tags                     []tag
	PermissionsBoundary      *string
}

type roleOut struct{ Role roleInfo }

type roleIn struct {
	RoleName string
}

type listRolesOut struct {
	listPage
	Roles []roleInfo
}

type updateRoleIn struct {
	RoleName           string
	Description        *string
	MaxSessionDuration *int32
}

type roleDescriptionIn struct {
	RoleName    string
	Description *string
}

type updateTrustIn struct {
	RoleName       string
	PolicyDocument string
}

func (s *Service) registerRoles(front *awsfront.Front) {
	register(s, front, apiIAM, "CreateRole", writes, func(c *call, in createRoleIn) (target, error) {
		r := iam.Role{Account: c.account, Path: pathOr(in.Path), Name: in.RoleName}
		return boundedBy(tagged(r.ARN().String(), nil, in.Tags), in.PermissionsBoundary), nil
	}, s.createRole)
	register(s, front, apiIAM, "GetRole", reads, func(c *call, in roleIn) (target, error) { return c.aboutRole(in.RoleName), nil },
		func(c *call, in roleIn) (*roleOut, error) {
			r, err := c.findRole(in.RoleName)
			if err != nil {
				return nil, err
			}
			return &roleOut{c.infoOfRole(r, true)}, nil
		})
	register(s, front, apiIAM, "ListRoles", reads, func(c *call, in listIn) (target, error) {
		return target{resource: iam.Role{Account: c.account, Path: listedPath(in)}.ARN().String()}, nil
	}, func(c *call, in listIn) (*listRolesOut, error) {
		roles, page, err := pageOf(c, c.state.Roles(c.account), in, func(r iam.Role) (string, string) { return r.Path, r.Name })
		out := &listRolesOut{listPage: page}
		for _, r := range roles {
			out.Roles = append(out.Roles, c.infoOfRole(r, false))
		}
		return out, err
	})
	register(s, front, apiIAM, "UpdateRole", writes, func(c *call, in updateRoleIn) (target, error) { return c.aboutRole(in.RoleName), nil }, s.updateRole)
	register(s, front, apiIAM, "UpdateRoleDescription", writes, func(c *call, in roleDescriptionIn) (target, error) { return c.aboutRole(in.RoleName), nil }, s.describeRole)
	register(s, front, apiIAM, "UpdateAssumeRolePolicy", writes, func(c *call, in updateTrustIn) (target, error) { return c.aboutRole(in.RoleName), nil }, s.updateTrust)
	register(s, front, apiIAM, "DeleteRole", writes, func(c *call, in roleIn) (target, error) { return c.aboutRole(in.RoleName), nil }, s.deleteRole)
}

func (c *call) findRole(name string) (iam.Role, error) {
	r, ok := c.state.Role(c.account, name)
	if !ok {
		return r, iamfault.Errorf(iamfault.NoSuchEntity, "The role with name %.128s cannot be found.", name)
	}
	return r, nil
}

func (c *call) aboutRole(name string) target {
	r, ok := c.state.Role(c.account, name)
	if !ok {
		r = iam.Role{Account: c.account, Path: "/", Name: name}
	}
	return tagged(r.ARN().String(), r.Tags, nil).as("role", name)
}

func (s *Service) createRole(c *call, in createRoleIn) (*roleOut, error) {
	r := iam.Role{
		Account: c.account, Path: pathOr(in.Path), Name: in.RoleName, MaxSession: iam.DefaultRoleSession, Created: moment(c.now), Tags: tagsFrom(in.Tags),
	}
	if in.Description != nil {
		r.Description = *in.Description
	}
	if in.MaxSessionDuration != nil {
		r.MaxSession = time.Duration(*in.MaxSessionDuration) * time.Second
	}
	if err := firstError(iam.CheckRoleName(r.Name), iam.CheckRolePath(r.Path), iam.CheckDescription(r.Description), iam.CheckMaxSession(r.MaxSession),
		iam.CheckTags(r.Tags)); err != nil {
		return nil, err
	}
	if c.state.taken(name(r)) {
		return nil, iamfault.Errorf(iamfault.EntityAlreadyExists, "Role with name %s already exists.", r.Name)
	}
	var err error
	if r.Trust, err = c.boundTrust(in.AssumeRolePolicyDocument); err != nil {
		return nil, err
	}
	if r.Boundary, err = s.newBoundary(c, in.PermissionsBoundary); err != nil {
		return nil, err
	}
	if r.ID, err = iam.NewID(iam.RolePrefix, s.config.Random); err != nil {
		return nil, err
	}
	return &roleOut{c.infoOfRole(r, true)}, s.config.Store.Create(c.ctx, r)
}

func (s *Service) updateRole(c *call, in updateRoleIn) (*none, error) {
	find := c.findRole
	if in.MaxSessionDuration != nil {
		find = c.changeableRole
	}
	r, err := find(in.RoleName)
	if err != nil {
		return nil, err
	}
	if in.Description != nil {
		r.Description = *in.Description
	}
	if in.MaxSessionDuration != nil {
		r.MaxSession = time.Duration(*in.MaxSessionDuration) * time.Second
	}
	if err := firstError(iam.CheckDescription(r.Description), iam.CheckMaxSession(r.MaxSession)); err != nil {
		return nil, err
	}
	return &none{}, s.config.Store.Update(c.ctx, c.state, r)
}

// describeRole is what UpdateRole was before it had other parameters; Terraform still calls it.
func (s *Service) describeRole(c *call, in roleDescriptionIn) (*roleOut, error) {
	r, err := c.findRole(in.RoleName)
	if err != nil {
		return nil, err
	}
	r.Description = *in.Description
	if err := iam.CheckDescription(r.Description); err != nil {
		return nil, err
	}
	return &roleOut{c.infoOfRole(r, true)}, s.config.Store.Update(c.ctx, c.state, r)
}

func (s *Service) updateTrust(c *call, in updateTrustIn) (*none, error) {
	r, err := c.changeableRole(in.RoleName)
	if err != nil {
		return nil, err
	}
	if r.Trust, err = c.boundTrust(in.PolicyDocument); err != nil {
		return nil, err
	}
	return nil, s.config.Store.Update(c.ctx, c.state, r)
}

func (s *Service) deleteRole(c *call, in roleIn) (*none, error) {
	r, err := c.changeableRole(in.RoleName)
	if err != nil {
		return nil, err
	}
	switch {
	case len(c.state.ProfilesOf(r.ID)) > 0:
		return nil, iamfault.Errorf(iamfault.DeleteConflict, "Cannot delete entity, must remove roles from instance profile first.")
	case len(r.Attached) > 0:
		return nil, iamfault.Errorf(iamfault.DeleteConflict, "Cannot delete entity, must detach all policies first.")
	case len(r.Inline) > 0:
		return nil, iamfault.Errorf(iamfault.DeleteConflict, "Cannot delete entity, must delete policies first.")
	}
	return nil, s.config.Store.Delete(c.ctx, c.state, r)
}

// tag is one tag on the wire.
type tag struct {
	Key   string
	Value string
}

func tagsOf(tags []iam.Tag) []tag {
	out := make([]tag, 0, len(tags))
	for _, t := range tags {
		out = append(out, tag(t))
	}
	return out
}

func tagsFrom(tags []tag) []iam.Tag {
	var out []iam.Tag
	for _, t := range tags {
		out = append(out, iam.Tag(t))
	}
	return out
}

// tagged is a target with the condition keys of its tags, and of those that the request would set.
func tagged(resource string, has []iam.Tag, sets []tag) target {
	conditions := map[string][]string{}
	addTags(conditions, has)
	var keys []string
	for _, t := range sets {
		conditions["aws:requesttag/"+lower(t.Key)] = []string{t.Value}
		keys = append(keys, t.Key)
	}
	if keys != nil {
		slices.Sort(keys)
		conditions["aws:tagkeys"] = keys
	}
	return target{resource: resource, context: conditions}
}
