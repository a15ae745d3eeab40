// SPDX-License-Identifier: Apache-2.0

package tagging

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
)

// invalid is the code of every refusal of a parameter.
const invalid = "InvalidParameterException"

// The limits of AWS.
const (
	mostFilters = 50
	mostValues  = 20 // of a filter
	mostTypes   = 100
	mostARNs    = 100
)

// filter is a condition about a tag: its key, and one of these values if there are any.
type filter struct {
	Key    string
	Values []string
}

type resourcesInput struct {
	TagFilters                []filter
	ResourceTypeFilters       []string
	ResourceARNList           []string
	ResourcesPerPage          *int32
	PaginationToken           string
	IncludeComplianceDetails  bool
	ExcludeCompliantResources bool
}

type mapping struct {
	ResourceARN string
	Tags        []awstag.Tag
}

type resourcesOutput struct {
	ResourceTagMappingList []mapping
	PaginationToken        *string // empty after the last page, and always there
}

func (a *api) getResources() awsfront.Spec[resourcesInput, resourcesOutput] {
	return awsfront.Spec[resourcesInput, resourcesOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *resourcesInput) (*resourcesOutput, error) {
			if err := in.check(); err != nil {
				return nil, err
			}
			asked, err := awsresource.AskedPage(a.Account, call, []any{in.TagFilters, in.ResourceTypeFilters, in.ResourceARNList}, in.ResourcesPerPage, in.PaginationToken)
			if err != nil {
				return nil, err
			}
			all, err := a.TagSources.All(ctx, call)
			if err != nil {
				return nil, err
			}
			all = slices.DeleteFunc(all, func(t awsresource.Tagged) bool { return !in.chooses(t) })
			page, next, err := awsresource.Cut(asked, all, func(t awsresource.Tagged) string { return t.ARN })
			if err != nil {
				return nil, err
			}
			out := &resourcesOutput{ResourceTagMappingList: make([]mapping, 0, len(page)), PaginationToken: &next}
			for _, t := range page {
				out.ResourceTagMappingList = append(out.ResourceTagMappingList, mapping{t.ARN, awsresource.ShownTags(t.Tags)})
			}
			return out, nil
		},
	}
}

// chooses reports whether a resource is one that the request asks for: by all filters of tags, and one of the types.
func (in *resourcesInput) chooses(t awsresource.Tagged) bool {
	if len(in.ResourceARNList) > 0 {
		return slices.Contains(in.ResourceARNList, t.ARN)
	}
	service, _, _ := strings.Cut(t.Type, ":")
	if len(in.ResourceTypeFilters) > 0 && !slices.Contains(in.ResourceTypeFilters, t.Type) && !slices.Contains(in.ResourceTypeFilters, service) {
		return false
	}
	for _, f := range in.TagFilters {
		value, has := t.Tags[f.Key]
		if !has || len(f.Values) > 0 && !slices.Contains(f.Values, string(value)) {
			return false
		}
	}
	return true
}

// typeForm is a service, or a service and a type of its resources.
var typeForm = regexp.MustCompile(`^[a-z0-9-]+(:[A-Za-z0-9/_-]+)?$`)

// check refuses what AWS refuses, and details of compliance: Muster has no tag policies.
func (in *resourcesInput) check() error {
	if in.IncludeComplianceDetails || in.ExcludeCompliantResources {
		return awsfault.Errorf(invalid, "Muster has no tag policies: leave out IncludeComplianceDetails and ExcludeCompliantResources")
	}
	if len(in.ResourceARNList) > 0 && (len(in.TagFilters) > 0 || len(in.ResourceTypeFilters) > 0 || in.ResourcesPerPage != nil || in.PaginationToken != "") {
		return awsfault.Errorf(invalid, "A request with a ResourceARNList has no TagFilters, ResourceTypeFilters, ResourcesPerPage or PaginationToken")
	}
	for _, list := range []struct {
		name      string
		has, most int
	}{{"tagFilters", len(in.TagFilters), mostFilters}, {"resourceTypeFilters", len(in.ResourceTypeFilters), mostTypes}, {"resourceARNList", len(in.ResourceARNList), mostARNs}} {
		if err := checkLength(list.name, list.has, list.most); err != nil {
			return err
		}
	}
	for _, f := range in.TagFilters {
		if err := checkKey("tagFilters.member.key", f.Key); err != nil {
			return err
		}
		if err := checkLength("tagFilters.member.values", len(f.Values), mostValues); err != nil {
			return err
		}
	}
	for _, name := range in.ResourceTypeFilters {
		if len(name) > 256 || !typeForm.MatchString(name) {
			return awsfault.Errorf(invalid, "The resource type %.100q is not one: name a service such as ec2, or a service and a type such as ec2:vpc", name)
		}
	}
	for _, text := range in.ResourceARNList {
		if _, err := arn.Parse(text); err != nil {
			return awsfault.Errorf(invalid, "%.300q is not an ARN", text)
		}
	}
	return nil
}

func checkLength(name string, has, most int) error {
	if has > most {
		return awsfault.Errorf(invalid, "1 validation error detected: Value at '%s' failed to satisfy constraint: Member must have length less than or equal to %d", name, most)
	}
	return nil
}

func checkKey(name, key string) error {
	n := utf8.RuneCountInString(key)
	if n == 0 || n > awstag.MostInKey {
		return awsfault.Errorf(invalid, "1 validation error detected: Value '%.20s' at '%s' failed to satisfy constraint: Member must have from 1 to %d characters", key, name, awstag.MostInKey)
	}
	return nil
}
