// SPDX-License-Identifier: Apache-2.0

package cloudformation

import (
	"context"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/cloudformation/resource"
	"muster.dev/muster/internal/aws/cloudformation/stacktemplate"
)

type getTemplateInput struct{ StackName, ChangeSetName, TemplateStage string }

type getTemplateOutput struct {
	TemplateBody    string
	StagesAvailable []string
}

func (s reads) getTemplate() awsfront.Spec[getTemplateInput, getTemplateOutput] {
	return awsfront.Spec[getTemplateInput, getTemplateOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *getTemplateInput) ([]awsfront.Target, error) {
			return s.about(ctx, call, in.StackName, nil)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *getTemplateInput) (*getTemplateOutput, error) {
			if err := notHere(map[string]bool{"ChangeSetName": in.ChangeSetName != ""}); err != nil {
				return nil, err
			}
			r, err := s.find(ctx, in.StackName)
			if err != nil {
				return nil, err
			}
			return &getTemplateOutput{r.Asked.Template, []string{"Original", "Processed"}}, nil // there are no transforms that change a template
		},
	}
}

type validateInput struct{ TemplateBody, TemplateURL string }

type validateOutput struct {
	Description, CapabilitiesReason  string
	Capabilities, DeclaredTransforms []string
	Parameters                       []templateParameter
}

type templateParameter struct {
	ParameterKey, Description string
	DefaultValue              *string
	NoEcho                    bool
}

func (s reads) validateTemplate() awsfront.Spec[validateInput, validateOutput] {
	return awsfront.Spec[validateInput, validateOutput]{
		Do: func(_ context.Context, _ *awsfront.Call, in *validateInput) (*validateOutput, error) {
			summary, err := summarized(in.TemplateBody, in.TemplateURL)
			if err != nil {
				return nil, err
			}
			out := &validateOutput{Description: summary.Description, CapabilitiesReason: summary.CapabilitiesReason, Capabilities: summary.Capabilities, DeclaredTransforms: summary.Transforms}
			for i := range summary.Parameters {
				p := &summary.Parameters[i]
				out.Parameters = append(out.Parameters, templateParameter{p.Name, p.Description, visible(p), p.NoEcho})
			}
			return out, nil
		},
	}
}

// visible is the default of a parameter that is shown.
func visible(p *stacktemplate.Parameter) *string {
	if p.NoEcho && p.Default != nil {
		text := "****"
		return &text
	}
	return p.Default
}

// summarized is what a template of a request needs.
func summarized(body, url string) (stacktemplate.Summary, error) {
	if err := notHere(map[string]bool{"TemplateURL": url != ""}); err != nil {
		return stacktemplate.Summary{}, err
	}
	if body == "" {
		return stacktemplate.Summary{}, refuse("Either Template URL or Template Body must be specified.")
	}
	template, err := stacktemplate.Parse([]byte(body))
	if err != nil {
		return stacktemplate.Summary{}, away(err)
	}
	if err := template.Check(nil); err != nil {
		return stacktemplate.Summary{}, away(err)
	}
	return template.Summary(), nil
}

type summaryInput struct {
	StackName, TemplateBody, TemplateURL, StackSetName, CallAs string
	TemplateSummaryConfig                                      *struct{ TreatUnrecognizedResourceTypesAsWarnings *bool }
}

type summaryOutput struct {
	Description, CapabilitiesReason, Metadata, Version string
	Capabilities, DeclaredTransforms, ResourceTypes    []string
	Parameters                                         []parameterDeclaration
	Warnings                                           *warnings
}

type warnings struct{ UnrecognizedResourceTypes []string }

type parameterDeclaration struct {
	ParameterKey, ParameterType, Description string
	DefaultValue                             *string
	NoEcho                                   bool
	ParameterConstraints                     *constraints
}

type constraints struct{ AllowedValues []string }

func (s reads) getSummary() awsfront.Spec[summaryInput, summaryOutput] {
	return awsfront.Spec[summaryInput, summaryOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *summaryInput) ([]awsfront.Target, error) {
			if in.StackName == "" {
				return s.everywhere(call), nil
			}
			return s.about(ctx, call, in.StackName, nil)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *summaryInput) (*summaryOutput, error) {
			if err := notHere(map[string]bool{"StackSetName": in.StackSetName != "", "CallAs": in.CallAs != ""}); err != nil {
				return nil, err
			}
			body := in.TemplateBody
			if in.StackName != "" {
				r, err := s.find(ctx, in.StackName)
				if err != nil {
					return nil, err
				}
				body = r.Asked.Template
			}
			summary, err := summarized(body, in.TemplateURL)
			if err != nil {
				return nil, err
			}
			return declared(summary, in.TemplateSummaryConfig != nil && in.TemplateSummaryConfig.TreatUnrecognizedResourceTypesAsWarnings != nil && *in.TemplateSummaryConfig.TreatUnrecognizedResourceTypesAsWarnings)
		},
	}
}

// declared answers a summary. Types that are not here are refused, or told as warnings.
func declared(summary stacktemplate.Summary, lenient bool) (*summaryOutput, error) {
	out := &summaryOutput{
		Description: summary.Description, CapabilitiesReason: summary.CapabilitiesReason, Metadata: summary.Metadata, Version: "2010-09-09",
		Capabilities: summary.Capabilities, DeclaredTransforms: summary.Transforms, ResourceTypes: summary.ResourceTypes,
	}
	for _, name := range summary.ResourceTypes {
		_, err := resource.Find(name)
		switch {
		case err == nil:
		case !lenient:
			return nil, refuse("Template format error: %v", err)
		case out.Warnings == nil:
			out.Warnings = &warnings{[]string{name}}
		default:
			out.Warnings.UnrecognizedResourceTypes = append(out.Warnings.UnrecognizedResourceTypes, name)
		}
	}
	for i := range summary.Parameters {
		p := &summary.Parameters[i]
		one := parameterDeclaration{p.Name, p.Type, p.Description, visible(p), p.NoEcho, nil}
		if len(p.AllowedValues) > 0 {
			one.ParameterConstraints = &constraints{p.AllowedValues}
		}
		out.Parameters = append(out.Parameters, one)
	}
	return out, nil
}
