// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/clienttoken"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/launchtemplate"
)

// maxVersionDescription is EC2's.
const maxVersionDescription = 255

type createLaunchTemplateInput struct {
	DryRun                                              bool
	ClientToken, LaunchTemplateName, VersionDescription string
	LaunchTemplateData                                  launchtemplate.Data
	TagSpecifications                                   []ec2resource.TagSpecification
}

type launchTemplateOutput struct{ LaunchTemplate *launchTemplate }

func (a *Actions) createLaunchTemplate() awsfront.Spec[createLaunchTemplateInput, launchTemplateOutput] {
	return awsfront.Spec[createLaunchTemplateInput, launchTemplateOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *createLaunchTemplateInput) ([]awsfront.Target, error) {
			tags, err := ec2resource.ReadTags(in.TagSpecifications, "launch-template")
			if err != nil {
				return nil, err
			}
			return []awsfront.Target{ec2resource.RequestTags(a.ec2.Target(call, "launch-template", "*", nil, nil), tags["launch-template"])}, nil
		},
		Do: a.doCreateLaunchTemplate,
	}
}

func (a *Actions) doCreateLaunchTemplate(ctx context.Context, call *awsfront.Call, in *createLaunchTemplateInput) (*launchTemplateOutput, error) {
	sent, err := ec2resource.TokenOf(call, in.ClientToken)
	if err != nil {
		return nil, err
	}
	if err := launchtemplate.CheckName(in.LaunchTemplateName); err != nil {
		return nil, err
	}
	version, err := newVersion(call, 1, in.VersionDescription, in.LaunchTemplateData)
	if err != nil {
		return nil, err
	}
	tags, err := ec2resource.ReadTags(in.TagSpecifications, "launch-template")
	if err != nil {
		return nil, err
	}
	defer a.ec2.Locks.Hold("launch-template-name/" + in.LaunchTemplateName)()
	there, err := a.templateByName(ctx, in.LaunchTemplateName)
	if err != nil {
		return nil, err
	}
	if there != nil {
		again, err := sent.Made(there)
		switch {
		case err != nil:
			return nil, err
		case !again:
			return nil, awsfault.Errorf("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
		}
		return &launchTemplateOutput{showLaunchTemplate(there)}, nil
	}
	if err := dryrun.Would(in.DryRun); err != nil {
		return nil, err
	}
	made := &v1alpha1.LaunchTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: ec2resource.NewID(ec2id.LaunchTemplate)},
		Spec: v1alpha1.LaunchTemplateSpec{
			Name: in.LaunchTemplateName, CreatedBy: version.CreatedBy, DefaultVersion: 1, LatestVersion: 1,
			Versions: []v1alpha1.LaunchTemplateVersion{*version}, Tags: awsresource.KeptTags(tags["launch-template"]),
		},
	}
	sent.Mark(made)
	if err := a.ec2.Management.Create(ctx, made); err != nil {
		return nil, ec2resource.Away(err)
	}
	return &launchTemplateOutput{showLaunchTemplate(made)}, nil
}

// newVersion is a version that a request asks for.
func newVersion(call *awsfront.Call, number int64, description string, data launchtemplate.Data) (*v1alpha1.LaunchTemplateVersion, error) {
	if n := utf8.RuneCountInString(description); n > maxVersionDescription {
		return nil, awsfault.Errorf(ec2resource.InvalidParameter, "The version description has %d characters: at most %d are allowed", n, maxVersionDescription)
	}
	if err := data.Check(); err != nil {
		return nil, err
	}
	kept, err := data.Kept()
	if err != nil {
		return nil, err
	}
	return &v1alpha1.LaunchTemplateVersion{
		Number: number, Description: description, CreateTime: metav1.NewTime(call.Now.Truncate(time.Second)), CreatedBy: call.Caller.ARN().String(), Data: kept,
	}, nil
}

type createLaunchTemplateVersionInput struct {
	NamedTemplate
	DryRun                                         bool
	ClientToken, SourceVersion, VersionDescription string
	LaunchTemplateData                             launchtemplate.Data
}

type launchTemplateVersionOutput struct{ LaunchTemplateVersion *launchTemplateVersion }

func (a *Actions) createLaunchTemplateVersion() awsfront.Spec[createLaunchTemplateVersionInput, launchTemplateVersionOutput] {
	return awsfront.Spec[createLaunchTemplateVersionInput, launchTemplateVersionOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createLaunchTemplateVersionInput) ([]awsfront.Target, error) {
			return a.AboutTemplate(ctx, call, in.NamedTemplate)
		},
		Do: a.doCreateLaunchTemplateVersion,
	}
}

func (a *Actions) doCreateLaunchTemplateVersion(ctx context.Context, call *awsfront.Call, in *createLaunchTemplateVersionInput) (*launchTemplateVersionOutput, error) {
	sent, err := ec2resource.TokenOf(call, in.ClientToken)
	if err != nil {
		return nil, err
	}
	found, err := a.Template(ctx, in.NamedTemplate)
	if err != nil {
		return nil, err
	}
	var made *v1alpha1.LaunchTemplateVersion
	template := &v1alpha1.LaunchTemplate{}
	err = a.ec2.Change(ctx, ec2id.LaunchTemplate, found.Name, template, func() error {
		if made, err = madeVersion(sent, template); err != nil || made != nil {
			return err
		}
		data := in.LaunchTemplateData
		if in.SourceVersion != "" {
			source, err := launchtemplate.Find(template, in.SourceVersion)
			if err != nil {
				return err
			}
			from, err := launchtemplate.Read(*source)
			if err != nil {
				return err
			}
			data = data.Over(from)
		}
		version, err := newVersion(call, template.Spec.LatestVersion+1, in.VersionDescription, data)
		if err != nil {
			return err
		}
		if err := launchtemplate.CheckRoom(template, len(version.Data.Raw)); err != nil {
			return err
		}
		if err := dryrun.Would(in.DryRun); err != nil {
			return err
		}
		version.Request = ofVersion(sent)
		template.Spec.Versions, template.Spec.LatestVersion = append(template.Spec.Versions, *version), version.Number
		made = version
		return nil
	})
	if err != nil {
		return nil, err
	}
	shown, err := showVersion(template, made)
	if err != nil {
		return nil, err
	}
	return &launchTemplateVersionOutput{&shown}, nil
}

// ofVersion is the token as a version keeps it, which is no object of its own.
func ofVersion(t awsresource.Token) string {
	if t.Key.Token == "" {
		return ""
	}
	return t.Key.Label() + " " + t.Request.Mark(0).String()
}

// madeVersion finds the version that this very request has made before.
func madeVersion(t awsresource.Token, of *v1alpha1.LaunchTemplate) (*v1alpha1.LaunchTemplateVersion, error) {
	if t.Key.Token == "" {
		return nil, nil
	}
	for i := range of.Spec.Versions {
		rest, ok := strings.CutPrefix(of.Spec.Versions[i].Request, t.Key.Label()+" ")
		if !ok {
			continue
		}
		mark, err := clienttoken.ParseMark(rest)
		if err != nil {
			continue // somebody changed it: it is nobody's
		}
		if _, err := clienttoken.Decide(t.Key, t.Request, []clienttoken.Mark{mark}); err != nil {
			return nil, err
		}
		return &of.Spec.Versions[i], nil
	}
	return nil, nil
}

type deleteLaunchTemplateInput struct {
	NamedTemplate
	DryRun bool
}

func (a *Actions) deleteLaunchTemplate() awsfront.Spec[deleteLaunchTemplateInput, launchTemplateOutput] {
	return awsfront.Spec[deleteLaunchTemplateInput, launchTemplateOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteLaunchTemplateInput) ([]awsfront.Target, error) {
			return a.AboutTemplate(ctx, call, in.NamedTemplate)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteLaunchTemplateInput) (*launchTemplateOutput, error) {
			found, err := a.Template(ctx, in.NamedTemplate)
			if err != nil {
				return nil, err
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			err = a.ec2.Management.Delete(ctx, found)
			switch {
			case apierrors.IsNotFound(err):
				return nil, ec2id.LaunchTemplate.NotFound(found.Name)
			case err != nil:
				return nil, ec2resource.Away(err)
			}
			return &launchTemplateOutput{showLaunchTemplate(found)}, nil
		},
	}
}
