// SPDX-License-Identifier: Apache-2.0

package nexttoken

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/awsfault"
)

// Limits are the sizes of the pages of an action.
type Limits struct {
	Least, Most, Default int
	name                 string // of the parameter
	code                 string // of a size that may not be
	front                bool   // the front of AWS's services refuses it, in its own words
}

// alike are the limits of services that have the same for all actions.
var alike = map[string]Limits{
	"arc-zonal-shift":        {Least: 1, Most: 100, Default: 100, name: "maxResults", code: "ValidationException", front: true},
	"ecr":                    {Least: 1, Most: 1000, Default: 100, name: "maxResults", code: "InvalidParameterException"},
	"eks":                    {Least: 1, Most: 100, Default: 100, name: "maxResults", code: "InvalidParameterException"},
	"elasticloadbalancing":   {Least: 1, Most: 400, Default: 400, name: "PageSize", code: "ValidationError"},
	"elasticloadbalancingv2": {Least: 1, Most: 400, Default: 400, name: "PageSize", code: "ValidationError"},
	"events":                 {Least: 1, Most: 100, Default: 100, name: "limit", code: "ValidationException", front: true},
	"fis":                    {Least: 1, Most: 100, Default: 100, name: "maxResults", code: "ValidationException", front: true},
	"pricing":                {Least: 1, Most: 100, Default: 100, name: "MaxResults", code: "InvalidParameterException"},
	"sqs":                    {Least: 1, Most: 1000, Default: 1000, name: "MaxResults", code: "InvalidParameterValue"},
	"ssm":                    {Least: 1, Most: 10, Default: 10, name: "MaxResults", code: "ValidationException", front: true},
}

// LimitsOf are the sizes of an action's pages, from the API references.
func LimitsOf(service, action string) Limits {
	if l, ok := alike[service]; ok {
		return l
	}
	switch service {
	case "ec2":
		l := Limits{Least: 5, Most: 1000, Default: 1000, name: "maxResults", code: "InvalidParameterValue"}
		switch action {
		case "DescribeInstanceTypes":
			l.Most, l.Default = 100, 100
		case "DescribeLaunchTemplates", "DescribeLaunchTemplateVersions":
			l.Least, l.Most, l.Default = 1, 200, 200
		}
		return l
	case "autoscaling":
		l := Limits{Least: 1, Most: 100, Default: 50, name: "MaxRecords", code: "ValidationError"}
		switch action {
		case "DescribeAutoScalingInstances":
			l.Most = 50
		case "DescribeScalingActivities":
			l.Default = 100
		}
		return l
	case "tagging":
		l := Limits{Least: 1, Most: 100, Default: 50, name: "resourcesPerPage", code: "InvalidParameterException", front: true}
		if action != "GetResources" {
			l.Default = 100
		}
		return l
	case "kms":
		l := Limits{Least: 1, Most: 1000, Default: 100, name: "Limit", code: "ValidationException", front: true}
		if action == "ListResourceTags" {
			l.Most, l.Default = 50, 50
		}
		if action == "ListAliases" {
			l.Most, l.Default = 100, 50
		}
		return l
	case "elasticfilesystem":
		l := Limits{Least: 1, Most: 1000, Default: 100, name: "MaxItems", code: "BadRequest"}
		switch action {
		case "DescribeAccessPoints", "ListTagsForResource":
			l.name = "MaxResults"
		}
		return l
	case "logs":
		return logsLimits(action)
	default:
		return Limits{Least: 1, Most: 1000, Default: 100, name: "MaxItems", code: "ValidationError"}
	}
}

// logsLimits are those of CloudWatch Logs.
func logsLimits(action string) Limits {
	l := Limits{Least: 1, Most: 50, Default: 50, name: "limit", code: "InvalidParameterException", front: true}
	switch action {
	case "FilterLogEvents", "GetLogEvents":
		l.Most, l.Default = 10_000, 10_000
	case "GetQueryResults":
		l.Most, l.Default, l.name = 10_000, 10_000, "maxItems"
	case "DescribeQueries":
		l.Most, l.Default, l.name = 1000, 1000, "maxResults"
	}
	return l
}

// Size is the size of a page, asked for or the default one.
func (l Limits) Size(asked *int32) (int, error) {
	if asked == nil {
		return l.Default, nil
	}
	if n := int(*asked); n < l.Least || n > l.Most {
		if l.code == "InvalidParameterValue" && n < l.Least { // EC2's words, which the least value contradicts
			return 0, awsfault.Errorf(l.code, "Value ( %d ) for parameter %s is invalid. Expecting a value greater than %d.", n, l.name, l.Least)
		}
		if l.front { // whose names begin with a small letter
			bound := fmt.Sprintf("greater than or equal to %d", l.Least)
			if n > l.Most {
				bound = fmt.Sprintf("less than or equal to %d", l.Most)
			}
			return 0, awsfault.Errorf(l.code, "1 validation error detected: Value '%d' at '%s' failed to satisfy constraint: Member must have value %s",
				n, strings.ToLower(l.name[:1])+l.name[1:], bound)
		}
		return 0, awsfault.Errorf(l.code, "Value ( %d ) for parameter %s is invalid: it must be from %d to %d", n, l.name, l.Least, l.Most)
	}
	return int(*asked), nil
}

// Page is one page of a list. Last is the key that the token of the next page names, empty if this one is the end.
type Page[T any] struct {
	Items []T
	Last  string
}

// Cut sorts items by their keys, which are unique and not empty, and returns the page behind the last one that was
// given out.
func Cut[T any](items []T, key func(T) string, after string, size int) Page[T] {
	sorted := slices.Clone(items)
	if after != "" {
		sorted = slices.DeleteFunc(sorted, func(item T) bool { return key(item) <= after })
	}
	slices.SortFunc(sorted, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	if len(sorted) <= size {
		return Page[T]{Items: sorted}
	}
	sorted = sorted[:max(size, 1)]
	return Page[T]{Items: sorted, Last: key(sorted[len(sorted)-1])}
}

// NewestFirst is the key of an item in a list whose newest items come first, such as the activities of a group.
func NewestFirst(at time.Time, id string) string {
	return fmt.Sprintf("%019d/%s", math.MaxInt64-at.UnixNano(), id)
}
