// SPDX-License-Identifier: Apache-2.0

package pricing

import (
	"context"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
)

// invalid is the code of every refusal of a parameter.
const invalid = "InvalidParameterException"

// maxFilters bounds the filters of a request. AWS's reference has no limit; Karpenter sends eight.
const maxFilters = 50

// filter is a condition about an attribute. All of a request must be fulfilled.
type filter struct{ Field, Type, Value string }

type getProductsInput struct {
	ServiceCode   string
	Filters       []filter
	FormatVersion string
	MaxResults    *int32
	NextToken     string
}

type getProductsOutput struct {
	FormatVersion string
	PriceList     []string // a product in JSON each
	NextToken     string
}

// format is the one of the list.
const format = "aws_v1"

func (l *list) getProducts() awsfront.Spec[getProductsInput, getProductsOutput] {
	return awsfront.Spec[getProductsInput, getProductsOutput]{
		Do: func(_ context.Context, call *awsfront.Call, in *getProductsInput) (*getProductsOutput, error) {
			if err := l.check(in); err != nil {
				return nil, err
			}
			asked, err := awsresource.AskedPage(l.Account, call, []any{in.ServiceCode, in.Filters}, in.MaxResults, in.NextToken)
			if err != nil {
				return nil, err
			}
			chosen := slices.DeleteFunc(slices.Clone(l.products), func(p product) bool {
				return slices.ContainsFunc(in.Filters, func(f filter) bool { return !f.chooses(p) })
			})
			out := &getProductsOutput{FormatVersion: format, PriceList: []string{}}
			page, next, err := awsresource.Cut(asked, chosen, func(p product) string { return p.sku })
			if err != nil {
				return nil, err
			}
			for _, p := range page {
				text, err := p.text()
				if err != nil {
					return nil, err
				}
				out.PriceList = append(out.PriceList, text)
			}
			out.NextToken = next
			return out, nil
		},
	}
}

// check refuses what the list does not have.
func (l *list) check(in *getProductsInput) error {
	switch {
	case in.ServiceCode != ec2Code:
		return awsfault.Errorf(invalid, "The ServiceCode is %.100q: Muster's price list has %s only", in.ServiceCode, ec2Code)
	case in.FormatVersion != "" && in.FormatVersion != format:
		return awsfault.Errorf(invalid, "The FormatVersion is %.100q: it must be %s", in.FormatVersion, format)
	case len(in.Filters) > maxFilters:
		return awsfault.Errorf(invalid, "There are %d filters: there may be %d", len(in.Filters), maxFilters)
	}
	for _, f := range in.Filters {
		if !slices.Contains(matches(), f.Type) {
			return awsfault.Errorf(invalid, "The filter %.100q has the Type %.100q: it must be one of %s", f.Field, f.Type, strings.Join(matches(), ", "))
		}
		if _, has := l.products[0].value(named(f.Field)); !has {
			known := append(slices.Sorted(maps.Keys(l.products[0].attributes)), "productFamily", "sku")
			return awsfault.Errorf(invalid, "No product of Muster's price list has the attribute %.100q: filter by one of %s", f.Field, strings.Join(known, ", "))
		}
	}
	return nil
}

// The types of filters.
const (
	termMatch = "TERM_MATCH"
	equals    = "EQUALS"
	contains  = "CONTAINS"
	anyOf     = "ANY_OF"
	noneOf    = "NONE_OF"
)

func matches() []string { return []string{termMatch, equals, contains, anyOf, noneOf} }

// chooses reports whether a product fulfils the condition. Values are compared whatever their case, as AWS's TERM_MATCH
// does.
func (f filter) chooses(p product) bool {
	value, _ := p.value(named(f.Field))
	among := func() bool {
		return slices.ContainsFunc(strings.Split(f.Value, ","), func(one string) bool { return strings.EqualFold(strings.TrimSpace(one), value) })
	}
	switch f.Type {
	case contains:
		return strings.Contains(strings.ToLower(value), strings.ToLower(f.Value))
	case anyOf:
		return among()
	case noneOf:
		return !among()
	default:
		return strings.EqualFold(f.Value, value)
	}
}
