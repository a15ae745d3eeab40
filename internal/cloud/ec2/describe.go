// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"slices"
	"strconv"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/aws/nexttoken"
)

// filtered is what most Describe actions take, beside ids. It is embedded in their inputs.
type filtered struct {
	DryRun  bool
	Filters []ec2filter.Filter
}

// paged is what those with pages take, too.
type paged struct {
	filtered
	MaxResults *int32
	NextToken  string
}

// noun is how a Describe action chooses from all resources of a kind. T is what the action answers.
type noun[T any] struct {
	kind ec2id.Kind
	// rules are the filters of the action. The filters of tags are among them if tags is set.
	rules ec2filter.Rules
	id    func(*T) string
	// values are what a resource has under the name of a filter.
	values func(*T, string) []string
	tags   func(*T) map[string]string
	// key is what pages are ordered by; nil is the id.
	key func(*T) string
}

// checkIDs refuses ids that are malformed.
func (n noun[T]) checkIDs(ids []string) error {
	for _, id := range ids {
		if err := n.kind.Check(id); err != nil {
			return err
		}
	}
	return nil
}

// choose returns those of all resources that the ids name and the filters choose, a page of them. An id that nothing has is an error.
func choose[T any](a *api, call *awsfront.Call, n noun[T], all []T, ids []string, in paged) (chosen []T, next string, err error) {
	if err := n.checkIDs(ids); err != nil {
		return nil, "", err
	}
	rules := n.rules
	rules.Tags = n.tags != nil
	filters, err := rules.Compile(in.Filters)
	if err != nil {
		return nil, "", err
	}
	size, err := nexttoken.LimitsOf(service, call.Action).Size(in.MaxResults)
	if err != nil {
		return nil, "", err
	}
	scope := nexttoken.Scope{Account: call.Caller.Account(), Service: service, Action: call.Action, Parameters: []any{ids, in.Filters}}
	after, err := a.Pages.Open(scope, in.NextToken)
	if err != nil {
		return nil, "", err
	}
	if err := dryrun.Would(in.DryRun); err != nil {
		return nil, "", err
	}
	found := map[string]bool{}
	for i := range all {
		item := &all[i]
		id := n.id(item)
		if len(ids) > 0 && !slices.Contains(ids, id) {
			continue
		}
		found[id] = true
		resource := ec2filter.Resource{Values: func(name string) []string { return n.values(item, name) }}
		if n.tags != nil {
			resource.Tags = n.tags(item)
		}
		if filters.Match(resource) {
			chosen = append(chosen, *item)
		}
	}
	if missing := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return found[id] }); len(missing) > 0 {
		return nil, "", n.kind.NotFound(missing...)
	}
	key := n.key
	if key == nil {
		key = n.id
	}
	p := nexttoken.Cut(chosen, func(item T) string { return key(&item) }, after, size)
	if p.Last != "" {
		if next, err = a.Pages.Seal(scope, p.Last); err != nil {
			return nil, "", err
		}
	}
	if p.Items == nil {
		p.Items = []T{} // clients tell an empty list from none
	}
	return p.Items, next, nil
}

// only refuses a parameter whose value is another than the one that Muster has.
func only(parameter, value string, allowed ...string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	if len(allowed) == 1 {
		return awsfault.Errorf(invalidParameter, "Value (%.100s) for parameter %s is invalid. Muster has %s only", value, parameter, allowed[0])
	}
	return awsfault.Errorf(invalidParameter, "Value (%.100s) for parameter %s is invalid. It must be one of %q", value, parameter, allowed)
}

// text is what filters compare a boolean with.
func text(yes bool) string {
	if yes {
		return "true"
	}
	return "false"
}

// number is what filters compare a number with.
func number(n int32) string { return strconv.Itoa(int(n)) }
