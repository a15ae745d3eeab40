// SPDX-License-Identifier: Apache-2.0

package fis

import (
	"context"
	"strings"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
)

// named is the id in an ARN, and whether it is that of a template.
func (e *Experiments) named(call *awsfront.Call, text string) (id string, template bool, err error) {
	parsed, err := arn.Parse(text)
	if id, template = strings.CutPrefix(parsed.Resource, templateResource); !template {
		id = strings.TrimPrefix(parsed.Resource, experimentResource)
	}
	if err != nil || parsed.Service != Service || id == parsed.Resource {
		return "", false, awsfault.Errorf(validation, "The ARN %.300q is not one of an experiment or a template, like %s", text, e.ARN(call, experimentResource+"ID"))
	}
	if parsed.Region != e.Region || parsed.Account != call.Caller.Account() {
		return "", false, awsfault.Errorf(notFound, "Resource %.300s does not exist.", text)
	}
	return id, template, nil
}

func (e *Experiments) aboutARN(ctx context.Context, call *awsfront.Call, text string) ([]awsfront.Target, error) {
	id, template, err := e.named(call, text)
	switch {
	case err != nil:
		return nil, err
	case template:
		return about(ctx, e, call, templates, templateResource, id)
	}
	return about(ctx, e, call, experiments, experimentResource, id)
}

// changeTags changes the tags of an ARN.
func (e *Experiments) changeTags(ctx context.Context, call *awsfront.Call, text string, change func(map[string]string) (map[string]string, error)) error {
	id, template, err := e.named(call, text)
	if err != nil {
		return err
	}
	changed := func(tags v1alpha1.Tags) (v1alpha1.Tags, error) {
		all, err := change(awsresource.PlainTags(tags))
		return awsresource.KeptTags(all), err
	}
	if template {
		_, err = templates.Update(ctx, e.Management, templates.NameOf(id), func(r *templateRecord) (err error) { r.Tags, err = changed(r.Tags); return err })
		return kept(templateNoun, id, err)
	}
	_, err = experiments.Update(ctx, e.Management, experiments.NameOf(id), func(r *experimentRecord) (err error) { r.Tags, err = changed(r.Tags); return err })
	return kept(experimentNoun, id, err)
}

type tagInput struct {
	ResourceARN string
	Tags        map[string]string
}

func (e *Experiments) tagResource() awsfront.Spec[tagInput, struct{}] {
	return awsfront.Spec[tagInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *tagInput) ([]awsfront.Target, error) {
			targets, err := e.aboutARN(ctx, call, in.ResourceARN)
			if err == nil {
				targets[0].Conditions = awsresource.RequestTags(targets[0].Conditions, awstag.Sorted(in.Tags))
			}
			return targets, err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *tagInput) (*struct{}, error) {
			set, err := awstag.Read(Service, awstag.Sorted(in.Tags))
			if err != nil {
				return nil, err
			}
			return nil, e.changeTags(ctx, call, in.ResourceARN, func(has map[string]string) (map[string]string, error) { return awstag.Merge(Service, has, set) })
		},
	}
}

type untagInput struct {
	ResourceARN string
	TagKeys     []string
}

func (e *Experiments) untagResource() awsfront.Spec[untagInput, struct{}] {
	return awsfront.Spec[untagInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *untagInput) ([]awsfront.Target, error) {
			targets, err := e.aboutARN(ctx, call, in.ResourceARN)
			if err == nil && len(in.TagKeys) > 0 {
				targets[0].Conditions["aws:TagKeys"] = in.TagKeys
			}
			return targets, err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *untagInput) (*struct{}, error) {
			return nil, e.changeTags(ctx, call, in.ResourceARN, func(has map[string]string) (map[string]string, error) {
				return awstag.Remove(Service, has, awsresource.Removals(in.TagKeys))
			})
		},
	}
}

type listTagsInput struct{ ResourceARN string }

type listTagsOutput struct{ Tags map[string]string }

func (e *Experiments) listTags() awsfront.Spec[listTagsInput, listTagsOutput] {
	return awsfront.Spec[listTagsInput, listTagsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *listTagsInput) ([]awsfront.Target, error) {
			return e.aboutARN(ctx, call, in.ResourceARN)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *listTagsInput) (*listTagsOutput, error) {
			id, template, err := e.named(call, in.ResourceARN)
			if err != nil {
				return nil, err
			}
			if template {
				r, err := e.template(ctx, id)
				if err != nil {
					return nil, err
				}
				return &listTagsOutput{awsresource.PlainTags(r.Tags)}, nil
			}
			r, err := e.experiment(ctx, id)
			if err != nil {
				return nil, err
			}
			return &listTagsOutput{awsresource.PlainTags(r.Tags)}, nil
		},
	}
}
