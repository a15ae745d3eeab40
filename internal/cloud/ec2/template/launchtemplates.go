// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/launchtemplate"
)

// Register adds the actions to the front.
func (a *Actions) Register(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "CreateLaunchTemplate", a.createLaunchTemplate())
	ec2resource.Register(a.ec2, f, "CreateLaunchTemplateVersion", a.createLaunchTemplateVersion())
	ec2resource.Register(a.ec2, f, "DescribeLaunchTemplates", a.describeLaunchTemplates())
	ec2resource.Register(a.ec2, f, "DescribeLaunchTemplateVersions", a.describeLaunchTemplateVersions())
	ec2resource.Register(a.ec2, f, "ModifyLaunchTemplate", a.modifyLaunchTemplate())
	ec2resource.Register(a.ec2, f, "DeleteLaunchTemplate", a.deleteLaunchTemplate())
	ec2resource.Register(a.ec2, f, "DeleteLaunchTemplateVersions", a.deleteLaunchTemplateVersions())
	a.ec2.Tagged(ec2resource.ObjectTags(a.ec2, ec2id.LaunchTemplate, "launch-template",
		func() *v1alpha1.LaunchTemplateList { return &v1alpha1.LaunchTemplateList{} },
		func(l *v1alpha1.LaunchTemplateList) []v1alpha1.LaunchTemplate { return l.Items },
		func(t *v1alpha1.LaunchTemplate) *v1alpha1.Tags { return &t.Spec.Tags }, nil))
}

// launchTemplate is a launch template as EC2 shows it.
type launchTemplate struct {
	LaunchTemplateID     string
	LaunchTemplateName   string    `filter:"launch-template-name"`
	CreateTime           time.Time `filter:"create-time"`
	CreatedBy            string
	DefaultVersionNumber int64
	LatestVersionNumber  int64
	Tags                 []awstag.Tag
}

func showLaunchTemplate(t *v1alpha1.LaunchTemplate) *launchTemplate {
	return &launchTemplate{
		LaunchTemplateID: t.Name, LaunchTemplateName: t.Spec.Name, CreateTime: t.CreationTimestamp.Time, CreatedBy: t.Spec.CreatedBy,
		DefaultVersionNumber: t.Spec.DefaultVersion, LatestVersionNumber: t.Spec.LatestVersion, Tags: awsresource.ShownTags(t.Spec.Tags),
	}
}

// NamedTemplate is how a request says which launch template it is about: by its id, or by its name.
type NamedTemplate struct{ LaunchTemplateID, LaunchTemplateName string }

// Template reads the launch template of a request.
func (a *Actions) Template(ctx context.Context, in NamedTemplate) (*v1alpha1.LaunchTemplate, error) {
	switch {
	case in.LaunchTemplateID != "" && in.LaunchTemplateName != "":
		return nil, awsfault.Errorf(ec2resource.InvalidCombination, "The parameter launchTemplateName cannot be used with the parameter launchTemplateId")
	case in.LaunchTemplateID != "":
		found := &v1alpha1.LaunchTemplate{}
		return found, a.ec2.Get(ctx, ec2id.LaunchTemplate, in.LaunchTemplateID, found)
	case in.LaunchTemplateName != "":
		found, err := a.templateByName(ctx, in.LaunchTemplateName)
		if err == nil && found == nil {
			return nil, launchtemplate.NameNotFound(in.LaunchTemplateName)
		}
		return found, err
	}
	return nil, awsfault.Errorf(ec2resource.MissingParameter, "Either a launch template ID or a launch template name must be specified in the request")
}

// templateByName returns nil if there is none of the name.
func (a *Actions) templateByName(ctx context.Context, name string) (*v1alpha1.LaunchTemplate, error) {
	var all v1alpha1.LaunchTemplateList
	if err := a.ec2.List(ctx, &all); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if all.Items[i].Spec.Name == name {
			return &all.Items[i], nil
		}
	}
	return nil, nil
}

// AboutTemplate is the launch template of a request as IAM is asked about it.
func (a *Actions) AboutTemplate(ctx context.Context, call *awsfront.Call, in NamedTemplate) ([]awsfront.Target, error) {
	const resource = "launch-template"
	found, err := a.Template(ctx, in)
	if isFault(err) { // a caller who may not see it is not told that it is not there
		id := in.LaunchTemplateID
		if !ec2id.LaunchTemplate.Is(id) {
			id = "*"
		}
		return []awsfront.Target{a.ec2.Target(call, resource, id, nil, nil)}, nil
	}
	if err != nil {
		return nil, err
	}
	return []awsfront.Target{a.ec2.Target(call, resource, found.Name, found.Spec.Tags, nil)}, nil
}

// isFault reports whether an error is the caller's.
func isFault(err error) bool {
	known, ok := err.(*awsfault.Error) //nolint:errorlint // those that read objects return it as it is
	return ok && known.Status < 500
}

type describeLaunchTemplatesInput struct {
	ec2resource.Paged
	LaunchTemplateIDs, LaunchTemplateNames []string
}

type describeLaunchTemplatesOutput struct {
	LaunchTemplates []launchTemplate
	NextToken       string
}

func (a *Actions) describeLaunchTemplates() awsfront.Spec[describeLaunchTemplatesInput, describeLaunchTemplatesOutput] {
	return awsfront.Spec[describeLaunchTemplatesInput, describeLaunchTemplatesOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeLaunchTemplatesInput) (*describeLaunchTemplatesOutput, error) {
			var all v1alpha1.LaunchTemplateList
			if err := a.ec2.List(ctx, &all); err != nil {
				return nil, err
			}
			shown, names := []launchTemplate{}, map[string]bool{}
			for i := range all.Items {
				names[all.Items[i].Spec.Name] = true
				if len(in.LaunchTemplateNames) == 0 || slices.Contains(in.LaunchTemplateNames, all.Items[i].Spec.Name) {
					shown = append(shown, *showLaunchTemplate(&all.Items[i]))
				}
			}
			for _, name := range in.LaunchTemplateNames {
				if !names[name] {
					return nil, awsfault.Errorf("InvalidLaunchTemplateName.NotFoundException", "At least one of the launch templates specified in the request does not exist: %.128s", name)
				}
			}
			out := &describeLaunchTemplatesOutput{}
			var err error
			out.LaunchTemplates, out.NextToken, err = ec2resource.Choose(a.ec2, call, launchTemplateNoun(), shown, in.LaunchTemplateIDs, in.Paged)
			return out, err
		},
	}
}

func launchTemplateNoun() ec2resource.Noun[launchTemplate] {
	return ec2resource.Noun[launchTemplate]{
		Kind: ec2id.LaunchTemplate, ID: func(t *launchTemplate) string { return t.LaunchTemplateID }, Tags: func(t *launchTemplate) map[string]string { return awsresource.TagMap(t.Tags) },
		Fields: awsresource.FiltersOf[launchTemplate](),
	}
}

// launchTemplateVersion is a version as EC2 shows it.
type launchTemplateVersion struct {
	LaunchTemplateID   string
	LaunchTemplateName string
	VersionNumber      int64
	VersionDescription string
	CreateTime         time.Time `filter:"create-time"`
	CreatedBy          string
	DefaultVersion     *bool               `filter:"is-default-version"`
	LaunchTemplateData launchtemplate.Data `filter:""`

	ebsOptimized bool `filter:"ebs-optimized"` // false if the data does not say
}

func showVersion(t *v1alpha1.LaunchTemplate, v *v1alpha1.LaunchTemplateVersion) (launchTemplateVersion, error) {
	data, err := launchtemplate.Read(*v)
	if err != nil {
		return launchTemplateVersion{}, fmt.Errorf("launch template %s: %w", t.Name, err)
	}
	return launchTemplateVersion{
		LaunchTemplateID: t.Name, LaunchTemplateName: t.Spec.Name, VersionNumber: v.Number, VersionDescription: v.Description,
		CreateTime: v.CreateTime.Time, CreatedBy: v.CreatedBy, DefaultVersion: new(v.Number == t.Spec.DefaultVersion), LaunchTemplateData: data,
		ebsOptimized: data.EbsOptimized != nil && *data.EbsOptimized,
	}, nil
}
