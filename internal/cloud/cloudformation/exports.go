// SPDX-License-Identifier: Apache-2.0

package cloudformation

import (
	"context"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/cloudformation/stackplan"
)

type exportsInput struct{ NextToken string }

type exportsOutput struct {
	Exports   []shownExport
	NextToken string
}

type shownExport struct{ ExportingStackID, Name, Value string }

func (s *Stacks) listExports() awsfront.Spec[exportsInput, exportsOutput] {
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

func (s *Stacks) listImports() awsfront.Spec[importsInput, importsOutput] {
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

// importers are the names of the stacks that import an export, sorted.
func (s *Stacks) importers(ctx context.Context, export string) ([]string, error) {
	all, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range all {
		if r.State.Status == stack.DeleteComplete {
			continue
		}
		for _, a := range []*stackplan.Asked{&r.Asked, r.Before} {
			if a == nil {
				continue
			}
			plan, err := stackplan.Read(*a, s.place(ctx, r))
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
