// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
)

// defaultItems and maxItems bound a page of IAM's lists.
const (
	defaultItems = 100
	maxItems     = 1000
)

// listPage is what a list action returns: embed it in the result.
type listPage struct {
	IsTruncated bool
	Marker      *string
}

// marking makes the markers of one request's list, and reads those that pages of the same request ended with.
type marking interface {
	Seal(last string) (string, error)
	// Open returns the key behind which the next page begins; false for a marker that no page of such a request ended
	// with.
	Open(marker string) (last string, ok bool)
}

// pageBy sorts items by their key, which is unique, and cuts the page that begins behind the marker. A marker names the
// last key that was given out, so items that come and go between two pages shift nothing.
func pageBy[T any](items []T, key func(T) string, markers marking, marker *string, most *int32) ([]T, listPage, error) {
	size := defaultItems
	if most != nil {
		if *most < 1 || *most > maxItems {
			return nil, listPage{}, &iam.OutOfRange{Field: "maxItems", Saw: int64(*most), Least: 1, Most: maxItems}
		}
		size = int(*most)
	}
	sorted := slices.Clone(items)
	slices.SortFunc(sorted, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	if marker != nil {
		after, ok := markers.Open(*marker)
		if !ok {
			return nil, listPage{}, iamfault.Errorf(iamfault.ValidationError, "Invalid Marker.")
		}
		sorted = slices.DeleteFunc(sorted, func(item T) bool { return key(item) <= after })
	}
	if len(sorted) <= size {
		return sorted, listPage{}, nil
	}
	sorted = sorted[:size]
	next, err := markers.Seal(key(sorted[size-1]))
	return sorted, listPage{IsTruncated: true, Marker: &next}, err
}
