// SPDX-License-Identifier: Apache-2.0

package awsquery

import (
	"encoding/base64"
	"slices"
	"strings"

	"muster.dev/muster/internal/iam/iam"
)

// defaultItems and maxItems bound a page of IAM's lists.
const (
	defaultItems = 100
	maxItems     = 1000
)

// Page is what a list action returns: embed it in the result.
type Page struct {
	IsTruncated bool
	Marker      string `xml:",omitempty"`
}

// PageOf sorts items by their key, which is unique, and cuts the page that begins behind the marker. A marker names the last key that was
// given out, so items that come and go between two pages shift nothing.
func PageOf[T any](items []T, key func(T) string, marker *string, most *int32) ([]T, Page, error) {
	size := defaultItems
	if most != nil {
		if *most < 1 || *most > maxItems {
			return nil, Page{}, &iam.OutOfRange{Field: "maxItems", Saw: int64(*most), Least: 1, Most: maxItems}
		}
		size = int(*most)
	}
	sorted := slices.Clone(items)
	slices.SortFunc(sorted, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	if marker != nil {
		after, err := base64.RawURLEncoding.Strict().DecodeString(*marker)
		if err != nil || len(after) == 0 {
			return nil, Page{}, Errorf(ValidationError, "the Marker is not one that a page ended with: begin without it")
		}
		sorted = slices.DeleteFunc(sorted, func(item T) bool { return key(item) <= string(after) })
	}
	if len(sorted) <= size {
		return sorted, Page{}, nil
	}
	sorted = sorted[:size]
	return sorted, Page{IsTruncated: true, Marker: base64.RawURLEncoding.EncodeToString([]byte(key(sorted[size-1])))}, nil
}
