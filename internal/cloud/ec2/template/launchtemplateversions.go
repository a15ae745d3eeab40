// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/launchtemplate"
)

type describeVersionsInput struct {
	ec2resource.Paged
	NamedTemplate
	Versions               []string
	MinVersion, MaxVersion string
	ResolveAlias           bool // no version names an image by an SSM parameter, so there is nothing to resolve
}

type describeVersionsOutput struct {
	LaunchTemplateVersions []launchTemplateVersion
	NextToken              string
}

func (a *Actions) describeLaunchTemplateVersions() awsfront.Spec[describeVersionsInput, describeVersionsOutput] {
	return awsfront.Spec[describeVersionsInput, describeVersionsOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeVersionsInput) (*describeVersionsOutput, error) {
			templates, err := a.templatesOf(ctx, in)
			if err != nil {
				return nil, err
			}
			var shown []launchTemplateVersion
			for i := range templates {
				chosen, err := versionsOf(&templates[i], in)
				if err != nil {
					return nil, err
				}
				shown = append(shown, chosen...)
			}
			out := &describeVersionsOutput{}
			out.LaunchTemplateVersions, out.NextToken, err = ec2resource.Choose(a.ec2, call, versionNoun(), shown, nil, in.Paged)
			return out, err
		},
	}
}

// templatesOf are the launch templates that a request is about: one, or all of them if it asks for $Latest or $Default
// versions.
func (a *Actions) templatesOf(ctx context.Context, in *describeVersionsInput) ([]v1alpha1.LaunchTemplate, error) {
	if in.LaunchTemplateID != "" || in.LaunchTemplateName != "" {
		one, err := a.Template(ctx, in.NamedTemplate)
		if err != nil {
			return nil, err
		}
		return []v1alpha1.LaunchTemplate{*one}, nil
	}
	numbered := func(version string) bool {
		return version != launchtemplate.Latest && version != launchtemplate.Default
	}
	if len(in.Versions) == 0 || slices.ContainsFunc(in.Versions, numbered) {
		return nil, awsfault.Errorf(ec2resource.MissingParameter, "A launch template ID or name must be specified, unless the versions are $Latest and $Default")
	}
	var all v1alpha1.LaunchTemplateList
	err := a.ec2.List(ctx, &all)
	return all.Items, err
}

// versionsOf are the versions of a template that a request chooses.
func versionsOf(t *v1alpha1.LaunchTemplate, in *describeVersionsInput) ([]launchTemplateVersion, error) {
	least, most := int64(1), int64(math.MaxInt64)
	var err error
	if in.MinVersion != "" || in.MaxVersion != "" {
		if len(in.Versions) > 0 {
			return nil, awsfault.Errorf(ec2resource.InvalidCombination, "A range of versions cannot be used with a list of versions")
		}
		if in.MinVersion != "" {
			least, err = launchtemplate.Number(t, in.MinVersion)
		}
		if err == nil && in.MaxVersion != "" {
			most, err = launchtemplate.Number(t, in.MaxVersion)
		}
		if err != nil {
			return nil, err
		}
	}
	wanted := map[int64]bool{}
	for _, name := range in.Versions {
		version, err := launchtemplate.Find(t, name)
		if err != nil {
			return nil, err
		}
		wanted[version.Number] = true
	}
	var chosen []launchTemplateVersion
	for i := range t.Spec.Versions {
		v := &t.Spec.Versions[i]
		if v.Number < least || v.Number > most || len(wanted) > 0 && !wanted[v.Number] {
			continue
		}
		shown, err := showVersion(t, v)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, shown)
	}
	return chosen, nil
}

func versionNoun() ec2resource.Noun[launchTemplateVersion] {
	return ec2resource.Noun[launchTemplateVersion]{
		Kind: ec2id.LaunchTemplate,
		ID:   func(v *launchTemplateVersion) string { return v.LaunchTemplateID },
		Key: func(v *launchTemplateVersion) string { // the newest first
			return fmt.Sprintf("%s/%019d", v.LaunchTemplateID, math.MaxInt64-v.VersionNumber)
		},
		Fields: awsresource.FiltersOf[launchTemplateVersion](),
		Rules:  ec2filter.Rules{Names: []string{"http-protocol-ipv4", "kernel-id", "network-card-index", "ram-disk-id"}}, // no version has them
	}
}

type modifyLaunchTemplateInput struct {
	NamedTemplate
	DryRun                      bool
	ClientToken, DefaultVersion string
}

func (a *Actions) modifyLaunchTemplate() awsfront.Spec[modifyLaunchTemplateInput, launchTemplateOutput] {
	return awsfront.Spec[modifyLaunchTemplateInput, launchTemplateOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *modifyLaunchTemplateInput) ([]awsfront.Target, error) {
			return a.AboutTemplate(ctx, call, in.NamedTemplate)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *modifyLaunchTemplateInput) (*launchTemplateOutput, error) {
			if _, err := ec2resource.TokenOf(call, in.ClientToken); err != nil { // the same default twice is the same
				return nil, err
			}
			found, err := a.Template(ctx, in.NamedTemplate)
			if err != nil {
				return nil, err
			}
			if in.DefaultVersion == "" {
				return nil, awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter SetDefaultVersion")
			}
			template := &v1alpha1.LaunchTemplate{}
			err = a.ec2.Change(ctx, ec2id.LaunchTemplate, found.Name, template, func() error {
				version, err := launchtemplate.Find(template, in.DefaultVersion)
				if err != nil {
					return err
				}
				template.Spec.DefaultVersion = version.Number
				return dryrun.Would(in.DryRun)
			})
			if err != nil {
				return nil, err
			}
			return &launchTemplateOutput{showLaunchTemplate(template)}, nil
		},
	}
}

type deleteVersionsInput struct {
	NamedTemplate
	DryRun   bool
	Versions []string
}

type deleteVersionsOutput struct {
	SuccessfullyDeletedLaunchTemplateVersions   []deletedVersion
	UnsuccessfullyDeletedLaunchTemplateVersions []keptVersion
}

type deletedVersion struct {
	LaunchTemplateID, LaunchTemplateName string
	VersionNumber                        int64
}

type keptVersion struct {
	deletedVersion
	ResponseError struct{ Code, Message string }
}

// maxDeletedVersions is how many versions one request may name, as EC2's.
const maxDeletedVersions = 200

func (a *Actions) deleteLaunchTemplateVersions() awsfront.Spec[deleteVersionsInput, deleteVersionsOutput] {
	return awsfront.Spec[deleteVersionsInput, deleteVersionsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteVersionsInput) ([]awsfront.Target, error) {
			return a.AboutTemplate(ctx, call, in.NamedTemplate)
		},
		Do: a.doDeleteVersions,
	}
}

func (a *Actions) doDeleteVersions(ctx context.Context, _ *awsfront.Call, in *deleteVersionsInput) (*deleteVersionsOutput, error) {
	found, err := a.Template(ctx, in.NamedTemplate)
	if err != nil {
		return nil, err
	}
	if len(in.Versions) > maxDeletedVersions {
		return nil, awsfault.Errorf(ec2resource.InvalidParameter, "There are %d versions: at most %d can be deleted at once", len(in.Versions), maxDeletedVersions)
	}
	var numbers []int64
	for _, text := range in.Versions {
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil || number < 1 {
			return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Invalid launch template version %.40q: versions are deleted by their numbers", text)
		}
		if !slices.Contains(numbers, number) {
			numbers = append(numbers, number)
		}
	}
	var out *deleteVersionsOutput
	template := &v1alpha1.LaunchTemplate{}
	err = a.ec2.Change(ctx, ec2id.LaunchTemplate, found.Name, template, func() error {
		out = &deleteVersionsOutput{SuccessfullyDeletedLaunchTemplateVersions: []deletedVersion{}, UnsuccessfullyDeletedLaunchTemplateVersions: []keptVersion{}}
		for _, number := range numbers {
			version := deletedVersion{template.Name, template.Spec.Name, number}
			i := slices.IndexFunc(template.Spec.Versions, func(v v1alpha1.LaunchTemplateVersion) bool { return v.Number == number })
			kept := keptVersion{deletedVersion: version}
			switch {
			case i < 0:
				kept.ResponseError.Code, kept.ResponseError.Message = "launchTemplateVersionDoesNotExist", launchtemplate.VersionNotFound(template, strconv.FormatInt(number, 10)).Message
				out.UnsuccessfullyDeletedLaunchTemplateVersions = append(out.UnsuccessfullyDeletedLaunchTemplateVersions, kept)
			case number == template.Spec.DefaultVersion:
				kept.ResponseError.Code, kept.ResponseError.Message = "unexpectedError", "The default version of a launch template cannot be deleted: make another one the default first"
				out.UnsuccessfullyDeletedLaunchTemplateVersions = append(out.UnsuccessfullyDeletedLaunchTemplateVersions, kept)
			default:
				template.Spec.Versions = slices.Delete(template.Spec.Versions, i, i+1)
				out.SuccessfullyDeletedLaunchTemplateVersions = append(out.SuccessfullyDeletedLaunchTemplateVersions, version)
			}
		}
		return dryrun.Would(in.DryRun)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
