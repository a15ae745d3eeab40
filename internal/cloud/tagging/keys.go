// SPDX-License-Identifier: Apache-2.0

package tagging

import (
	"context"
	"maps"
	"slices"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
)

type tagKeysInput struct{ PaginationToken string }

type tagKeysOutput struct {
	TagKeys         []string
	PaginationToken *string
}

func (a *api) getTagKeys() awsfront.Spec[tagKeysInput, tagKeysOutput] {
	return awsfront.Spec[tagKeysInput, tagKeysOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *tagKeysInput) (*tagKeysOutput, error) {
			all, err := a.TagSources.All(ctx, call)
			if err != nil {
				return nil, err
			}
			keys := map[string]bool{}
			for _, t := range all {
				for key := range t.Tags {
					keys[key] = true
				}
			}
			page, next, err := awsresource.Page(a.Account, call, nil, slices.Collect(maps.Keys(keys)), awsresource.Itself, nil, in.PaginationToken)
			return &tagKeysOutput{page, &next}, err
		},
	}
}

type tagValuesInput struct{ Key, PaginationToken string }

type tagValuesOutput struct {
	TagValues       []string
	PaginationToken *string
}

func (a *api) getTagValues() awsfront.Spec[tagValuesInput, tagValuesOutput] {
	return awsfront.Spec[tagValuesInput, tagValuesOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *tagValuesInput) (*tagValuesOutput, error) {
			if err := checkKey("key", in.Key); err != nil {
				return nil, err
			}
			all, err := a.TagSources.All(ctx, call)
			if err != nil {
				return nil, err
			}
			values := map[string]bool{}
			for _, t := range all {
				if value, ok := t.Tags[in.Key]; ok {
					values[string(value)] = true
				}
			}
			// The key of a page is never empty, and a value may be.
			page, next, err := awsresource.Page(a.Account, call, in.Key, slices.Collect(maps.Keys(values)), func(value string) string { return "=" + value }, nil, in.PaginationToken)
			return &tagValuesOutput{page, &next}, err
		},
	}
}
