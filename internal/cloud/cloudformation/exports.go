// SPDX-License-Identifier: Apache-2.0

package cloudformation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/cloudformation/stackplan"
	"muster.dev/muster/internal/cloud/cloudformation/stackrecord"
)

type exportsInput struct{ NextToken string }

type exportsOutput struct {
	Exports   []shownExport
	NextToken string
}

type shownExport struct{ ExportingStackID, Name, Value string }

func (s reads) listExports() awsfront.Spec[exportsInput, exportsOutput] {
	return awsfront.Spec[exportsInput, exportsOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *exportsInput) (*exportsOutput, error) {
			all, err := s.all(ctx)
			if err != nil {
				return nil, err
			}
			shown := []shownExport{}
			for _, r := range all {
				for _, output := range r.Outputs {
					if output.Export != "" {
						shown = append(shown, shownExport{r.ARN, output.Export, output.Shown()})
					}
				}
			}
			slices.SortFunc(shown, func(a, b shownExport) int { return strings.Compare(a.Name, b.Name) })
			out := &exportsOutput{}
			out.Exports, out.NextToken, err = awsresource.Page(s.Account, call, nil, shown, func(one shownExport) string { return one.Name }, nil, in.NextToken)
			return out, err
		},
	}
}

type importsInput struct{ ExportName, NextToken string }

type importsOutput struct {
	Imports   []string
	NextToken string
}

func (s reads) listImports() awsfront.Spec[importsInput, importsOutput] {
	return awsfront.Spec[importsInput, importsOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *importsInput) (*importsOutput, error) {
			users, err := s.importers(ctx, in.ExportName)
			if err != nil {
				return nil, err
			}
			if len(users) == 0 {
				return nil, refuse("Export '%.255s' is not imported by any stack.", in.ExportName)
			}
			out := &importsOutput{}
			out.Imports, out.NextToken, err = awsresource.Page(s.Account, call, in.ExportName, users, awsresource.Itself, nil, in.NextToken)
			return out, err
		},
	}
}

// imports are the exports of the account for one evaluation, read when the first of them is asked for.
type imports struct {
	list   func() ([]*stackrecord.Record, error)
	values map[string]string // nil before they were read
	wrong  error             // of stacks that cannot be read
	// away is why the management plane did not tell a value: the evaluation says nothing, and is made again.
	away error
}

// value is the value of an export.
func (i *imports) value(name string) (string, error) {
	if i.values == nil {
		all, err := i.list()
		if all == nil && err != nil {
			i.away = err
			return "", err
		}
		i.values, i.wrong = map[string]string{}, err
		for _, r := range all {
			for _, output := range r.Outputs {
				if output.Export != "" {
					i.values[output.Export] = output.Value
				}
			}
		}
	}
	if value, ok := i.values[name]; ok {
		return value, nil
	}
	if i.wrong != nil {
		return "", i.wrong
	}
	return "", fmt.Errorf("No export named %s found", name) //nolint:staticcheck // AWS's words
}

// importers are the names of the stacks that import an export, sorted.
func (s *Stacks) importers(ctx context.Context, export string) ([]string, error) {
	all, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, r := range all {
		for _, output := range r.Outputs {
			exports[output.Export] = output.Value
		}
	}
	var names []string
	for _, r := range all {
		if r.State.Status == stack.DeleteComplete || r.State.Status == stack.Review {
			continue // it has nothing that could import
		}
		place, _ := s.place(ctx, r)
		place.Imports = func(name string) (string, error) { return exports[name], nil }
		for _, a := range []*stackplan.Asked{&r.Asked, r.Before} {
			if a == nil {
				continue
			}
			plan, err := stackplan.Read(*a, place)
			if err != nil {
				return nil, away(err)
			}
			if slices.Contains(plan.Imported(r.State), export) {
				names = append(names, r.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// outputs evaluates the outputs of a stack whose resources are there. The operation fails, for the reason that is returned, if an output
// cannot be evaluated, if another stack has taken the name of an export meanwhile, and if an export that a stack imports has another value.
func (s *Stacks) outputs(ctx context.Context, r *stackrecord.Record) (outputs []stackrecord.Output, wrong string, err error) {
	place, imported := s.place(ctx, r)
	plan, err := stackplan.Read(r.Asked, place)
	if err != nil {
		return nil, "", err
	}
	values, err := plan.Outputs(r.State)
	if imported.away != nil {
		return nil, "", imported.away
	}
	if err != nil {
		return nil, fmt.Sprintf("The outputs of the stack cannot be evaluated: %v", err), nil
	}
	had := map[string]string{}
	for _, output := range r.Outputs {
		had[output.Export] = output.Value
	}
	for _, v := range values {
		outputs = append(outputs, stackrecord.Output{Name: v.Name, Value: v.Value, Description: v.Description, Export: v.Export, Secret: v.Secret})
		before, exported := had[v.Export]
		if v.Export == "" || exported && before == v.Value {
			continue
		}
		if exported {
			users, err := s.importers(ctx, v.Export)
			if err != nil {
				return nil, "", err
			}
			if len(users) > 0 {
				return nil, fmt.Sprintf("Export %s cannot be updated as it is in use by %s", v.Export, strings.Join(users, ", ")), nil
			}
			continue
		}
		if taken, err := s.takenBy(ctx, r, []string{v.Export}); err != nil || taken != "" {
			return nil, taken, err
		}
	}
	return outputs, "", nil
}

// takenBy says which other stack exports one of some names; empty if none does.
func (s *Stacks) takenBy(ctx context.Context, r *stackrecord.Record, names []string) (string, error) {
	all, err := s.store.List(ctx)
	if err != nil {
		return "", err
	}
	for _, other := range all {
		for _, output := range other.Outputs {
			if other.ID != r.ID && output.Export != "" && slices.Contains(names, output.Export) {
				return fmt.Sprintf("Export with name %s is already exported by stack %s", output.Export, other.Name), nil
			}
		}
	}
	return "", nil
}
