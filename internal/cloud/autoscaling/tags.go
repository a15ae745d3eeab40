// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"errors"
	"maps"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/cloud/awsresource"
)

const resourceType = "auto-scaling-group"

type shownTag struct {
	Key               string `filter:"key"`
	Value             string `filter:"value"`
	ResourceID        string `filter:"auto-scaling-group"`
	ResourceType      string
	PropagateAtLaunch bool `filter:"propagate-at-launch"`
}

// tags are those that EKS gives a group, and its own, sorted by key.
func (g *group) tags() []shownTag {
	all := map[string]shownTag{}
	for key, value := range g.given() {
		all[key] = shownTag{key, value, g.name, resourceType, true}
	}
	for _, t := range g.kept().Tags {
		all[t.Key] = shownTag{t.Key, string(t.Value), g.name, resourceType, t.PropagateAtLaunch}
	}
	sorted := []shownTag{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		sorted = append(sorted, all[key])
	}
	return sorted
}

// given are the tags that EKS gives the group of a node group.
func (g *group) given() map[string]string {
	if g.node == nil {
		return nil
	}
	cluster := g.clusterName()
	return map[string]string{
		"eks:cluster-name": cluster, "eks:nodegroup-name": g.node.Spec.Name, "kubernetes.io/cluster/" + cluster: "owned",
		"k8s.io/cluster-autoscaler/enabled": "true", "k8s.io/cluster-autoscaler/" + cluster: "owned",
	}
}

func (g *group) tagMap() map[string]string {
	all := map[string]string{}
	for _, t := range g.tags() {
		all[t.Key] = t.Value
	}
	return all
}

// tagInput is a tag of a request, with the group that it is of.
type tagInput struct {
	Key, ResourceID, ResourceType string
	Value                         *string
	PropagateAtLaunch             *bool
}

type tagsInput struct{ Tags []tagInput }

// byGroup are the tags of a request, by group.
func (in *tagsInput) byGroup() (map[string][]tagInput, error) {
	groups := map[string][]tagInput{}
	for _, t := range in.Tags {
		switch {
		case t.ResourceType != resourceType:
			return nil, awsfault.Errorf(invalid, "Tags of the resource type %.64q are not Auto Scaling's: write %s", t.ResourceType, resourceType)
		case t.ResourceID == "":
			return nil, awsfault.Errorf(invalid, "The tag %.128q names no group: write its name as ResourceId", t.Key)
		}
		groups[t.ResourceID] = append(groups[t.ResourceID], t)
	}
	if len(groups) == 0 {
		return nil, awsfault.Errorf(invalid, "The request has no tags")
	}
	return groups, nil
}

func (a *api) aboutTags(values bool) func(context.Context, *awsfront.Call, *tagsInput) ([]awsfront.Target, error) {
	return func(ctx context.Context, call *awsfront.Call, in *tagsInput) ([]awsfront.Target, error) {
		groups, err := in.byGroup()
		if err != nil {
			return nil, err
		}
		names := slices.Sorted(maps.Keys(groups))
		targets, err := a.about(ctx, call, names...)
		for i := range targets {
			for _, t := range groups[names[i]] {
				targets[i].Conditions["aws:TagKeys"] = append(targets[i].Conditions["aws:TagKeys"], t.Key)
				if values && t.Value != nil {
					targets[i].Conditions["aws:RequestTag/"+t.Key] = []string{*t.Value}
				}
			}
		}
		return targets, err
	}
}

func createOrUpdateTags(a *api) awsfront.Spec[tagsInput, struct{}] {
	return awsfront.Spec[tagsInput, struct{}]{
		About: a.aboutTags(true),
		Do: func(ctx context.Context, _ *awsfront.Call, in *tagsInput) (*struct{}, error) {
			return nil, a.eachGroup(ctx, in, func(g *group, tags []tagInput) error {
				own, sets := map[string]string{}, []awstag.Tag{}
				for _, t := range g.kept().Tags {
					own[t.Key] = string(t.Value)
				}
				for _, t := range tags {
					sets = append(sets, awstag.Tag{Key: t.Key, Value: deref(t.Value)})
				}
				read, err := awstag.Read(service, sets)
				if err == nil {
					_, err = awstag.Merge(service, own, read)
				}
				if err != nil {
					return err
				}
				for _, t := range tags {
					setTag(g.scaling(), v1alpha1.AutoScalingTag{Key: t.Key, Value: v1alpha1.TagValue(deref(t.Value)), PropagateAtLaunch: t.PropagateAtLaunch == nil || *t.PropagateAtLaunch})
				}
				return nil
			})
		},
	}
}

func setTag(s *v1alpha1.AutoScaling, tag v1alpha1.AutoScalingTag) {
	at := slices.IndexFunc(s.Tags, func(t v1alpha1.AutoScalingTag) bool { return t.Key == tag.Key })
	if at < 0 {
		s.Tags = append(s.Tags, tag)
		return
	}
	s.Tags[at] = tag
}

func deleteTags(a *api) awsfront.Spec[tagsInput, struct{}] {
	return awsfront.Spec[tagsInput, struct{}]{
		About: a.aboutTags(false),
		Do: func(ctx context.Context, _ *awsfront.Call, in *tagsInput) (*struct{}, error) {
			return nil, a.eachGroup(ctx, in, func(g *group, tags []tagInput) error {
				s := g.scaling()
				for _, t := range tags {
					own := len(s.Tags)
					s.Tags = slices.DeleteFunc(s.Tags, func(has v1alpha1.AutoScalingTag) bool { return has.Key == t.Key })
					if _, given := g.given()[t.Key]; given && len(s.Tags) == own {
						return awsfault.Errorf(invalid, "The tag %s follows from the node group: it cannot be deleted", t.Key)
					}
				}
				return nil
			})
		},
	}
}

// eachGroup changes each group that the tags of a request are of. All must be there before one is changed.
func (a *api) eachGroup(ctx context.Context, in *tagsInput, change func(*group, []tagInput) error) error {
	groups, err := in.byGroup()
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(groups))
	for _, name := range names {
		g, err := a.group(ctx, name)
		if err == nil {
			err = change(g, groups[name]) // of a copy that is thrown away
		}
		if err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := a.change(ctx, name, func(g *group) error { return change(g, groups[name]) }); err != nil {
			return err
		}
	}
	return nil
}

type describeTagsInput struct {
	Filters    []ec2filter.Filter
	MaxRecords *int32
	NextToken  string
}

type describeTagsOutput struct {
	Tags      []shownTag
	NextToken string
}

func describeTags(a *api) awsfront.Spec[describeTagsInput, describeTagsOutput] {
	return awsfront.Spec[describeTagsInput, describeTagsOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeTagsInput) (*describeTagsOutput, error) {
			fields := awsresource.FiltersOf[shownTag]()
			rules := fields.Rules()
			rules.Exact = true
			filters, err := rules.Compile(in.Filters)
			if err != nil {
				return nil, asValidation(err)
			}
			all, err := a.groups(ctx)
			if err != nil {
				return nil, err
			}
			var shown []shownTag
			for _, g := range all {
				for _, t := range g.tags() {
					if filters.Match(ec2filter.Resource{Values: func(name string) []string { values, _ := fields.Values(&t, name); return values }}) {
						shown = append(shown, t)
					}
				}
			}
			out := &describeTagsOutput{}
			out.Tags, out.NextToken, err = awsresource.Page(a.Account, call, []any{in.Filters}, shown, func(t shownTag) string { return t.ResourceID + "\n" + t.Key }, in.MaxRecords, in.NextToken)
			return out, err
		},
	}
}

// asValidation is a refusal with the code that Auto Scaling has for all of them.
func asValidation(err error) error {
	if fault := refusal(err); fault != nil {
		return awsfault.Errorf(invalid, "%s", fault.Message)
	}
	return err
}

// refusal is an error that is a refusal of the request; nil if it is another one.
func refusal(err error) *awsfault.Error {
	if fault := (*awsfault.Error)(nil); errors.As(err, &fault) && fault.Cause == nil {
		return fault
	}
	return nil
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
