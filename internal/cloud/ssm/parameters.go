// SPDX-License-Identifier: Apache-2.0

package ssm

import (
	"context"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
)

// parameter is one as Systems Manager shows it.
type parameter struct {
	Name, Type, Value, Selector, ARN, DataType string
	Version                                    *int64
	LastModifiedDate                           time.Time
}

// arn is the name of a parameter for policies: of no account if it is public.
func (a *api) arn(call *awsfront.Call, name string) string {
	account := call.Caller.Account()
	if strings.HasPrefix(name, "/aws/") {
		account = ""
	}
	return "arn:aws:ssm:" + a.Region + ":" + account + ":parameter/" + strings.TrimPrefix(name, "/")
}

func (a *api) show(call *awsfront.Call, p ami.Parameter, selector string) parameter {
	kind := "text"
	if strings.HasSuffix(p.Name, "/image_id") {
		kind = "aws:ec2:image"
	}
	return parameter{
		Name: p.Name, Type: "String", Value: p.Value, Selector: selector, ARN: a.arn(call, p.Name), DataType: kind, Version: new(int64(1)), LastModifiedDate: p.Modified,
	}
}

// split takes the version or label off a name, as "/a/b:1".
func split(name string) (base, selector string) {
	if i := strings.LastIndex(name, ":"); i >= 0 {
		return name[:i], name[i:]
	}
	return name, ""
}

// named returns a request's name without its selector, and the selector. An ARN is replaced by the name of the
// parameter in it.
func (a *api) named(call *awsfront.Call, name string) (base, selector string) {
	for _, p := range a.parameters {
		if own := a.arn(call, p.Name); name == own || strings.HasPrefix(name, own+":") {
			return p.Name, strings.TrimPrefix(name, own)
		}
	}
	return split(name)
}

// find finds a parameter. Each has one version.
func (a *api) find(call *awsfront.Call, name string) (parameter, error) {
	base, selector := a.named(call, name)
	i := slices.IndexFunc(a.parameters, func(p ami.Parameter) bool { return p.Name == base })
	switch {
	case i < 0:
		return parameter{}, awsfault.Errorf("ParameterNotFound", "Parameter %.300s not found.", name)
	case selector != "" && selector != ":1":
		return parameter{}, awsfault.Errorf("ParameterVersionNotFound", "Systems Manager could not find version %.100s of %s.", strings.TrimPrefix(selector, ":"), base)
	}
	return a.show(call, a.parameters[i], selector), nil
}

type getParameterInput struct {
	Name           string
	WithDecryption bool // none is encrypted
}

type getParameterOutput struct{ Parameter *parameter }

func (a *api) getParameter() awsfront.Spec[getParameterInput, getParameterOutput] {
	return awsfront.Spec[getParameterInput, getParameterOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *getParameterInput) ([]awsfront.Target, error) {
			return a.about(call, in.Name), nil
		},
		Do: func(_ context.Context, call *awsfront.Call, in *getParameterInput) (*getParameterOutput, error) {
			found, err := a.find(call, in.Name)
			if err != nil {
				return nil, err
			}
			return &getParameterOutput{&found}, nil
		},
	}
}

func (a *api) about(call *awsfront.Call, names ...string) []awsfront.Target {
	var targets []awsfront.Target
	for _, name := range names {
		base, _ := a.named(call, name)
		targets = append(targets, awsfront.Target{Resource: a.arn(call, base)})
	}
	return targets
}

// maxNames is Systems Manager's.
const maxNames = 10

type getParametersInput struct {
	Names          []string
	WithDecryption bool
}

type getParametersOutput struct {
	Parameters        []parameter
	InvalidParameters []string
}

func (a *api) getParameters() awsfront.Spec[getParametersInput, getParametersOutput] {
	return awsfront.Spec[getParametersInput, getParametersOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *getParametersInput) ([]awsfront.Target, error) {
			if n := len(in.Names); n == 0 || n > maxNames {
				return nil, awsfault.Errorf("ValidationException", "There are %d names: there must be from 1 to %d", n, maxNames)
			}
			return a.about(call, in.Names...), nil
		},
		Do: func(_ context.Context, call *awsfront.Call, in *getParametersInput) (*getParametersOutput, error) {
			out := &getParametersOutput{Parameters: []parameter{}, InvalidParameters: []string{}}
			for i, name := range in.Names {
				if slices.Contains(in.Names[:i], name) {
					continue
				}
				if found, err := a.find(call, name); err == nil {
					out.Parameters = append(out.Parameters, found)
				} else {
					out.InvalidParameters = append(out.InvalidParameters, name)
				}
			}
			return out, nil
		},
	}
}

type getByPathInput struct {
	Path, NextToken           string
	Recursive, WithDecryption bool
	MaxResults                *int32
}

type getByPathOutput struct {
	Parameters []parameter
	NextToken  string
}

func (a *api) getParametersByPath() awsfront.Spec[getByPathInput, getByPathOutput] {
	return awsfront.Spec[getByPathInput, getByPathOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *getByPathInput) ([]awsfront.Target, error) {
			recursive := "false"
			if in.Recursive {
				recursive = "true"
			}
			return []awsfront.Target{{Resource: a.arn(call, strings.TrimSuffix(in.Path, "/")), Conditions: map[string][]string{"ssm:Recursive": {recursive}}}}, nil
		},
		Do: func(_ context.Context, call *awsfront.Call, in *getByPathInput) (*getByPathOutput, error) {
			if !strings.HasPrefix(in.Path, "/") {
				return nil, awsfault.Errorf("ValidationException", "The parameter doesn't meet the parameter name requirements. The parameter name must begin with a forward slash \"/\": %.100q does not", in.Path)
			}
			below := []parameter{}
			for _, p := range a.parameters {
				rest, ok := strings.CutPrefix(p.Name, strings.TrimSuffix(in.Path, "/")+"/")
				if ok && (in.Recursive || !strings.Contains(rest, "/")) {
					below = append(below, a.show(call, p, ""))
				}
			}
			page, next, err := awsresource.Page(a.Account, call, []any{in.Path, in.Recursive}, below, func(p parameter) string { return p.Name }, in.MaxResults, in.NextToken)
			return &getByPathOutput{page, next}, err
		},
	}
}
