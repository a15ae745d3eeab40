// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/internal/awsquery"
	"muster.dev/muster/internal/iam"
)

func lower(s string) string { return strings.ToLower(s) }

// addTags adds the condition keys of what the tags are on.
func addTags(conditions map[string][]string, tags []iam.Tag) {
	for _, t := range tags {
		conditions["aws:resourcetag/"+lower(t.Key)] = []string{t.Value}
		conditions["iam:resourcetag/"+lower(t.Key)] = []string{t.Value}
	}
}

type tagUserIn struct {
	UserName string `query:",required"`
	Tags     []tag
}

type tagRoleIn struct {
	RoleName string `query:",required"`
	Tags     []tag
}

type untagUserIn struct {
	UserName string `query:",required"`
	TagKeys  []string
}

type untagRoleIn struct {
	RoleName string `query:",required"`
	TagKeys  []string
}

type listTagsOut struct {
	awsquery.Page
	Tags awsquery.List[tag]
}

func (s *Service) registerTags(server *awsquery.Server) {
	api := awsquery.IAM()
	register(s, server, api, "TagUser", writes, func(c *call, in tagUserIn) (target, error) { return withTags(c.aboutUser(in.UserName), in.Tags), nil },
		func(c *call, in tagUserIn) (*none, error) {
			u, err := c.user(in.UserName)
			if err == nil {
				u.Tags, err = addedTags(u.Tags, in.Tags)
			}
			if err != nil {
				return nil, err
			}
			return nil, s.config.Store.Update(c.ctx, c.state, u)
		})
	register(s, server, api, "UntagUser", writes, func(c *call, in untagUserIn) (target, error) {
		return withKeys(c.aboutUser(in.UserName), in.TagKeys), nil
	},
		func(c *call, in untagUserIn) (*none, error) {
			u, err := c.user(in.UserName)
			if err != nil {
				return nil, err
			}
			u.Tags = withoutTags(u.Tags, in.TagKeys)
			return nil, s.config.Store.Update(c.ctx, c.state, u)
		})
	register(s, server, api, "ListUserTags", reads, func(c *call, in listUserThingsIn) (target, error) { return c.aboutUser(in.UserName), nil },
		func(c *call, in listUserThingsIn) (*listTagsOut, error) {
			u, err := c.user(in.UserName)
			if err != nil {
				return nil, err
			}
			return listTags(u.Tags, in.Marker, in.MaxItems)
		})
	register(s, server, api, "TagRole", writes, func(c *call, in tagRoleIn) (target, error) { return withTags(c.aboutRole(in.RoleName), in.Tags), nil },
		func(c *call, in tagRoleIn) (*none, error) {
			r, err := c.findRole(in.RoleName)
			if err == nil {
				r.Tags, err = addedTags(r.Tags, in.Tags)
			}
			if err != nil {
				return nil, err
			}
			return nil, s.config.Store.Update(c.ctx, c.state, r)
		})
	register(s, server, api, "UntagRole", writes, func(c *call, in untagRoleIn) (target, error) {
		return withKeys(c.aboutRole(in.RoleName), in.TagKeys), nil
	},
		func(c *call, in untagRoleIn) (*none, error) {
			r, err := c.findRole(in.RoleName)
			if err != nil {
				return nil, err
			}
			r.Tags = withoutTags(r.Tags, in.TagKeys)
			return nil, s.config.Store.Update(c.ctx, c.state, r)
		})
	register(s, server, api, "ListRoleTags", reads, func(c *call, in listForRoleIn) (target, error) { return c.aboutRole(in.RoleName), nil },
		func(c *call, in listForRoleIn) (*listTagsOut, error) {
			r, err := c.findRole(in.RoleName)
			if err != nil {
				return nil, err
			}
			return listTags(r.Tags, in.Marker, in.MaxItems)
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
	return all, iam.CheckTags(all)
}

func withoutTags(has []iam.Tag, keys []string) []iam.Tag {
	return slices.DeleteFunc(slices.Clone(has), func(t iam.Tag) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return strings.EqualFold(key, t.Key) })
	})
}

func listTags(tags []iam.Tag, marker *string, most *int32) (*listTagsOut, error) {
	tags, page, err := awsquery.PageOf(tags, func(t iam.Tag) string { return t.Key }, marker, most)
	return &listTagsOut{Page: page, Tags: awsquery.ListOf(tagsOf(tags))}, err
}
