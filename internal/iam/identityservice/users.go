// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"strings"
	"time"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
)

type userInfo struct {
	Path, UserName, UserId, Arn string
	CreateDate                  time.Time
	Tags                        *[]tag
	PermissionsBoundary         *boundaryInfo
}

func infoOfUser(u iam.User, tags bool) userInfo {
	info := userInfo{Path: u.Path, UserName: u.Name, UserId: u.ID, Arn: u.ARN().String(), CreateDate: u.Created}
	if tags {
		info.PermissionsBoundary = infoOfBoundary(u.Boundary)
	}
	if tags && len(u.Tags) > 0 {
		list := tagsOf(u.Tags)
		info.Tags = &list
	}
	return info
}

type createUserIn struct {
	UserName            string
	Path                *string
	Tags                []tag
	PermissionsBoundary *string
}

type userOut struct{ User userInfo }

type userNameIn struct{ UserName *string }

type requiredUserIn struct {
	UserName string
}

type listIn struct {
	PathPrefix, Marker *string
	MaxItems           *int32
}

type listUsersOut struct {
	listPage
	Users []userInfo
}

type updateUserIn struct {
	UserName             string
	NewPath, NewUserName *string
}

type listUserThingsIn struct {
	UserName string
	Marker   *string
	MaxItems *int32
}

type listGroupsOut struct {
	listPage
	Groups []none
}

func (s *Service) registerUsers(front *awsfront.Front) {
	register(s, front, apiIAM, "CreateUser", writes, func(c *call, in createUserIn) (target, error) {
		u := iam.User{Account: c.account, Path: pathOr(in.Path), Name: in.UserName}
		return boundedBy(tagged(u.ARN().String(), nil, in.Tags), in.PermissionsBoundary), nil
	}, s.createUser)
	register(s, front, apiIAM, "GetUser", reads, func(c *call, in userNameIn) (target, error) {
		name, err := c.userName(in.UserName)
		return c.aboutUser(name), err
	}, func(c *call, in userNameIn) (*userOut, error) {
		name, err := c.userName(in.UserName)
		if err != nil {
			return nil, err
		}
		u, err := c.user(name)
		return &userOut{infoOfUser(u, true)}, err
	})
	register(s, front, apiIAM, "ListUsers", reads, func(c *call, in listIn) (target, error) {
		return target{resource: iam.User{Account: c.account, Path: listedPath(in)}.ARN().String()}, nil
	}, func(c *call, in listIn) (*listUsersOut, error) {
		users, page, err := pageOf(c, c.state.Users(c.account), in, func(u iam.User) (string, string) { return u.Path, u.Name })
		if err != nil {
			return nil, err
		}
		out := &listUsersOut{listPage: page}
		for _, u := range users {
			out.Users = append(out.Users, infoOfUser(u, false))
		}
		return out, nil
	})
	register(s, front, apiIAM, "UpdateUser", writes, func(c *call, in updateUserIn) (target, error) { return c.aboutUser(in.UserName), nil }, s.updateUser)
	register(s, front, apiIAM, "DeleteUser", writes, func(c *call, in requiredUserIn) (target, error) { return c.aboutUser(in.UserName), nil }, s.deleteUser)
	register(s, front, apiIAM, "ListGroupsForUser", reads, func(c *call, in listUserThingsIn) (target, error) { return c.aboutUser(in.UserName), nil },
		func(c *call, in listUserThingsIn) (*listGroupsOut, error) { // muster has no groups; tools ask before they delete a user
			page, err := c.nothingOf(listKeysIn{&in.UserName, in.Marker, in.MaxItems})
			return &listGroupsOut{listPage: page}, err
		})
}

// userName is the user that is meant where the name may be left out: the caller.
func (c *call) userName(name *string) (string, error) {
	if name != nil && *name != "" {
		return *name, nil
	}
	if u, ok := c.state.UserByID(c.id); ok {
		return u.Name, nil
	}
	return "", iamfault.Errorf(iamfault.ValidationError, "Must specify userName when calling with non-User credentials")
}

func (c *call) user(name string) (iam.User, error) {
	u, ok := c.state.User(c.account, name)
	if !ok {
		return u, iamfault.Errorf(iamfault.NoSuchEntity, "The user with name %.128s cannot be found.", name)
	}
	return u, nil
}

func (c *call) aboutUser(name string) target {
	u, ok := c.state.User(c.account, name)
	if !ok {
		u = iam.User{Account: c.account, Path: "/", Name: name}
	}
	return tagged(u.ARN().String(), u.Tags, nil).as("user", name)
}

func (s *Service) createUser(c *call, in createUserIn) (*userOut, error) {
	u := iam.User{Account: c.account, Path: pathOr(in.Path), Name: in.UserName, Created: c.now.UTC(), Tags: tagsFrom(in.Tags)}
	if err := firstError(iam.CheckUserName(u.Name), iam.CheckPath(u.Path), iam.CheckTags(u.Tags)); err != nil {
		return nil, err
	}
	if c.state.taken(name(u)) {
		return nil, iamfault.Errorf(iamfault.EntityAlreadyExists, "User with name %s already exists.", u.Name)
	}
	var err error
	if u.Boundary, err = s.newBoundary(c, in.PermissionsBoundary); err != nil {
		return nil, err
	}
	if u.ID, err = iam.NewID(iam.UserPrefix, s.config.Random); err != nil {
		return nil, err
	}
	u.Created = moment(c.now)
	return &userOut{infoOfUser(u, true)}, s.config.Store.Create(c.ctx, u)
}

func (s *Service) updateUser(c *call, in updateUserIn) (*none, error) {
	u, err := c.user(in.UserName)
	if err != nil {
		return nil, err
	}
	if in.NewPath != nil {
		u.Path = *in.NewPath
	}
	if in.NewUserName != nil {
		if !strings.EqualFold(*in.NewUserName, u.Name) && c.state.taken(nameOf(kindUser, c.account, *in.NewUserName)) {
			return nil, iamfault.Errorf(iamfault.EntityAlreadyExists, "User with name %.128s already exists.", *in.NewUserName)
		}
		u.Name = *in.NewUserName
	}
	if err := firstError(iam.CheckUserName(u.Name), iam.CheckPath(u.Path)); err != nil {
		return nil, err
	}
	// A rename must be allowed for the old and for the new name: policies are about names.
	if err := s.authorize(c, "iam:UpdateUser", tagged(u.ARN().String(), u.Tags, nil)); err != nil {
		return nil, err
	}
	return nil, s.config.Store.Update(c.ctx, c.state, u)
}

func (s *Service) deleteUser(c *call, in requiredUserIn) (*none, error) {
	u, err := c.user(in.UserName)
	if err != nil {
		return nil, err
	}
	switch {
	case len(c.state.KeysOf(u.ID)) > 0:
		return nil, iamfault.Errorf(iamfault.DeleteConflict, "Cannot delete entity, must delete access keys first.")
	case len(u.Attached) > 0:
		return nil, iamfault.Errorf(iamfault.DeleteConflict, "Cannot delete entity, must detach all policies first.")
	case len(u.Inline) > 0:
		return nil, iamfault.Errorf(iamfault.DeleteConflict, "Cannot delete entity, must delete policies first.")
	}
	return nil, s.config.Store.Delete(c.ctx, c.state, u)
}
