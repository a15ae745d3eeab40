// SPDX-License-Identifier: Apache-2.0

package ec2resource

import (
	"net/netip"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
)

// Filtered is what most Describe actions take, beside ids. It is embedded in their inputs.
type Filtered struct {
	DryRun  bool
	Filters []ec2filter.Filter
}

// Paged has the parameters of Describe actions with pages.
type Paged struct {
	Filtered
	MaxResults *int32
	NextToken  string
}

// Noun is how a Describe action chooses from all resources of a kind. T is what the action answers.
type Noun[T any] struct {
	Kind ec2id.Kind
	// Fields are the filters that fields of T have by their tags.
	Fields awsresource.Filters[T]
	// Rules are the other filters of the action, for which no resource has a value. The filters of tags are among them
	// if tags is set.
	Rules ec2filter.Rules
	ID    func(*T) string
	Tags  func(*T) map[string]string
	// Key is what pages are ordered by; nil is the id.
	Key func(*T) string
}

// Match reads the filters of a request, and returns the question whether they choose a resource.
func (n Noun[T]) Match(filters []ec2filter.Filter) (func(*T) bool, error) {
	rules := n.Fields.Rules(n.Rules.Names...)
	rules.Tags = n.Tags != nil
	set, err := rules.Compile(filters)
	if err != nil {
		return nil, err
	}
	return func(item *T) bool {
		resource := ec2filter.Resource{Values: func(name string) []string { return n.Under(item, name) }}
		if n.Tags != nil {
			resource.Tags = n.Tags(item)
		}
		return set.Match(resource)
	}, nil
}

// Under is what a resource has under the name of a filter.
func (n Noun[T]) Under(item *T, name string) []string {
	values, _ := n.Fields.Values(item, name)
	return values
}

// checkIDs refuses ids that are malformed.
func (n Noun[T]) checkIDs(ids []string) error {
	for _, id := range ids {
		if err := n.Kind.Check(id); err != nil {
			return err
		}
	}
	return nil
}

// Choose returns those of all resources that the ids name and the filters choose, a page of them. An id that nothing
// has is an error.
func Choose[T any](a *EC2, call *awsfront.Call, n Noun[T], all []T, ids []string, in Paged) (chosen []T, next string, err error) {
	if err := n.checkIDs(ids); err != nil {
		return nil, "", err
	}
	match, err := n.Match(in.Filters)
	if err != nil {
		return nil, "", err
	}
	page, err := awsresource.AskedPage(a.Account, call, []any{ids, in.Filters}, in.MaxResults, in.NextToken)
	if err != nil {
		return nil, "", err
	}
	if err := dryrun.Would(in.DryRun); err != nil {
		return nil, "", err
	}
	found := map[string]bool{}
	for i := range all {
		item := &all[i]
		id := n.ID(item)
		if len(ids) > 0 && !slices.Contains(ids, id) {
			continue
		}
		found[id] = true
		if match(item) {
			chosen = append(chosen, *item)
		}
	}
	if missing := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return found[id] }); len(missing) > 0 {
		return nil, "", n.Kind.NotFound(missing...)
	}
	key := n.Key
	if key == nil {
		key = n.ID
	}
	return awsresource.Cut(page, chosen, func(item T) string { return key(&item) })
}

// Only refuses a parameter whose value is another than the one that Muster has.
func Only(parameter, value string, allowed ...string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	if len(allowed) == 1 {
		return awsfault.Errorf(InvalidParameter, "Value (%.100s) for parameter %s is invalid. Muster has %s only", value, parameter, allowed[0])
	}
	return awsfault.Errorf(InvalidParameter, "Value (%.100s) for parameter %s is invalid. It must be one of %q", value, parameter, allowed)
}

// BlockOf reads the range of a parameter, of IPv4 or of IPv6. Bits behind its length are dropped, as EC2 does.
func BlockOf(parameter, text string, v4 bool) (string, error) {
	cidr, err := netip.ParsePrefix(text)
	if err != nil || cidr.Addr().Is4() != v4 || cidr.Addr().Is4In6() {
		return "", awsfault.Errorf(InvalidParameter, "Value (%.50s) for parameter %s is invalid. This is not a valid CIDR block.", text, parameter)
	}
	return cidr.Masked().String(), nil
}

// None answers a request to describe resources that an account never has. Ids in the request do not exist; code is
// EC2's error code for that.
func None[T any](in Paged, out *T, code, noun string, ids []string) (*T, error) {
	if len(ids) > 0 {
		return nil, awsfault.Errorf(code, "The %s '%.200s' does not exist", noun, strings.Join(ids, ", "))
	}
	if in.NextToken != "" {
		return nil, awsfault.Errorf("InvalidNextToken", "The pagination token is not valid: there is one page")
	}
	return out, dryrun.Would(in.DryRun)
}
