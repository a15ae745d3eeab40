// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/iam/iam"
)

func lower(s string) string { return strings.ToLower(s) }

// addTags adds the condition keys of what the tags are on.
func addTags(conditions map[string][]string, tags []iam.Tag) {
	for _, t := range tags {
		conditions["aws:resourcetag/"+lower(t.Key)] = []string{t.Value}
		conditions["iam:resourcetag/"+lower(t.Key)] = []string{t.Value}
	}
}

// tagIn, untagIn and listTagsIn are the parameters of the three actions about tags, of something that is named.
type tagIn struct {
	name string
	tags []tag
}

type untagIn struct {
	name string
	keys []string
}

type listTagsIn struct {
	name   string
	marker *string
	most   *int32
}

type listTagsOut struct {
	listPage
	Tags []tag
}

// tagging is how the tags of one kind of entity are reached.
type tagging struct {
	about func(c *call, name string) target
	// find returns the tags of an entity, and the entity with other tags. changing is false if they are to be read
	// only.
	find func(c *call, name string, changing bool) (has []iam.Tag, with func([]iam.Tag) Entity, err error)
}

func (s *Service) registerTags(front *awsfront.Front) {
	users := tagging{(*call).aboutUser, func(c *call, name string, _ bool) ([]iam.Tag, func([]iam.Tag) Entity, error) {
		u, err := c.user(name)
		return u.Tags, func(t []iam.Tag) Entity { u.Tags = t; return u }, err
	}}
	roles := tagging{(*call).aboutRole, func(c *call, name string, _ bool) ([]iam.Tag, func([]iam.Tag) Entity, error) {
		r, err := c.findRole(name)
		return r.Tags, func(t []iam.Tag) Entity { r.Tags = t; return r }, err
	}}
	profiles := tagging{(*call).aboutProfile, func(c *call, name string, _ bool) ([]iam.Tag, func([]iam.Tag) Entity, error) {
		p, err := c.profile(name)
		return p.Tags, func(t []iam.Tag) Entity { p.Tags = t; return p }, err
	}}
	policies := tagging{s.aboutPolicy, func(c *call, name string, changing bool) ([]iam.Tag, func([]iam.Tag) Entity, error) {
		find := s.findPolicy
		if changing {
			find = s.ownPolicy
		}
		p, err := find(c, name)
		return p.Tags, func(t []iam.Tag) Entity { p.Tags = t; return p }, err
	}}
	registerTag(s, front, "TagUser", users, func(in tagUserIn) tagIn { return tagIn{in.UserName, in.Tags} })
	registerTag(s, front, "TagRole", roles, func(in tagRoleIn) tagIn { return tagIn{in.RoleName, in.Tags} })
	registerTag(s, front, "TagInstanceProfile", profiles, func(in tagProfileIn) tagIn { return tagIn{in.InstanceProfileName, in.Tags} })
	registerTag(s, front, "TagPolicy", policies, func(in tagPolicyIn) tagIn { return tagIn{in.PolicyArn, in.Tags} })
	registerUntag(s, front, "UntagUser", users, func(in untagUserIn) untagIn { return untagIn{in.UserName, in.TagKeys} })
	registerUntag(s, front, "UntagRole", roles, func(in untagRoleIn) untagIn { return untagIn{in.RoleName, in.TagKeys} })
	registerUntag(s, front, "UntagInstanceProfile", profiles, func(in untagProfileIn) untagIn { return untagIn{in.InstanceProfileName, in.TagKeys} })
	registerUntag(s, front, "UntagPolicy", policies, func(in untagPolicyIn) untagIn { return untagIn{in.PolicyArn, in.TagKeys} })
	registerListTags(s, front, "ListUserTags", users, func(in listUserThingsIn) listTagsIn { return listTagsIn{in.UserName, in.Marker, in.MaxItems} })
	registerListTags(s, front, "ListRoleTags", roles, func(in listForRoleIn) listTagsIn { return listTagsIn{in.RoleName, in.Marker, in.MaxItems} })
	registerListTags(s, front, "ListInstanceProfileTags", profiles, func(in listProfileTagsIn) listTagsIn {
		return listTagsIn{in.InstanceProfileName, in.Marker, in.MaxItems}
	})
	registerListTags(s, front, "ListPolicyTags", policies, func(in listVersionsIn) listTagsIn { return listTagsIn{in.PolicyArn, in.Marker, in.MaxItems} })
}

func registerTag[In any](s *Service, front *awsfront.Front, action string, on tagging, read func(In) tagIn) {
	register(s, front, apiIAM, action, writes, func(c *call, in In) (target, error) {
		asked := read(in)
		return withTags(on.about(c, asked.name), asked.tags), nil
	}, func(c *call, in In) (*none, error) {
		asked := read(in)
		has, with, err := on.find(c, asked.name, true)
		if err != nil {
			return nil, err
		}
		tags, err := addedTags(has, asked.tags)
		if err != nil {
			return nil, err
		}
		return nil, s.config.Store.Update(c.ctx, c.state, with(tags))
	})
}

func registerUntag[In any](s *Service, front *awsfront.Front, action string, on tagging, read func(In) untagIn) {
	register(s, front, apiIAM, action, writes, func(c *call, in In) (target, error) {
		asked := read(in)
		return withKeys(on.about(c, asked.name), asked.keys), nil
	}, func(c *call, in In) (*none, error) {
		asked := read(in)
		if err := iam.CheckTagKeys(asked.keys); err != nil {
			return nil, err
		}
		has, with, err := on.find(c, asked.name, true)
		if err != nil {
			return nil, err
		}
		return nil, s.config.Store.Update(c.ctx, c.state, with(withoutTags(has, asked.keys)))
	})
}

func registerListTags[In any](s *Service, front *awsfront.Front, action string, on tagging, read func(In) listTagsIn) {
	register(s, front, apiIAM, action, reads, func(c *call, in In) (target, error) {
		return on.about(c, read(in).name), nil
	}, func(c *call, in In) (*listTagsOut, error) {
		asked := read(in)
		has, _, err := on.find(c, asked.name, false)
		if err != nil {
			return nil, err
		}
		tags, page, err := pageBy(has, func(t iam.Tag) string { return t.Key }, c.markers, asked.marker, asked.most)
		return &listTagsOut{listPage: page, Tags: tagsOf(tags)}, err
	})
}

func withTags(t target, sets []tag) target {
	maps.Copy(t.context, tagged(t.resource, nil, sets).context)
	return t
}

func withKeys(t target, keys []string) target {
	t.context["aws:tagkeys"] = keys
	return t
}

// addedTags are the tags with others set over them. Keys are one when they differ in capitals only.
func addedTags(has []iam.Tag, sets []tag) ([]iam.Tag, error) {
	added := tagsFrom(sets)
	if err := iam.CheckTags(added); err != nil {
		return nil, err
	}
	all := slices.Clone(has)
	for _, t := range added {
		if i := slices.IndexFunc(all, func(old iam.Tag) bool { return strings.EqualFold(old.Key, t.Key) }); i >= 0 {
			all[i] = t
		} else {
			all = append(all, t)
		}
	}
	return all, iam.CheckTagTotal(all)
}

func withoutTags(has []iam.Tag, keys []string) []iam.Tag {
	return slices.DeleteFunc(slices.Clone(has), func(t iam.Tag) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return strings.EqualFold(key, t.Key) })
	})
}

type tagUserIn struct {
	UserName string
	Tags     []tag
}

type tagRoleIn struct {
	RoleName string
	Tags     []tag
}

type tagProfileIn struct {
	InstanceProfileName string
	Tags                []tag
}

type tagPolicyIn struct {
	PolicyArn string
	Tags      []tag
}

type untagUserIn struct {
	UserName string
	TagKeys  []string
}

type untagRoleIn struct {
	RoleName string
	TagKeys  []string
}

type untagProfileIn struct {
	InstanceProfileName string
	TagKeys             []string
}

type untagPolicyIn struct {
	PolicyArn string
	TagKeys   []string
}

type listProfileTagsIn struct {
	InstanceProfileName string
	Marker              *string
	MaxItems            *int32
}
