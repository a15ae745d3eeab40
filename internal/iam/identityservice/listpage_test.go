// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPages(t *testing.T) {
	items := []string{"d", "b", "a", "c"}
	same := func(s string) string { return s }
	one, zero, thousand, more := int32(1), int32(0), int32(1000), int32(1001)
	bad, empty := "b", ""
	for name, c := range map[string]struct {
		marker *string
		most   *int32
		fine   bool
	}{
		"one item is a page": {nil, &one, true}, "no item is none": {nil, &zero, false}, "a thousand is the most": {nil, &thousand, true},
		"a thousand and one is too many": {nil, &more, false}, "a marker of one's own is refused": {&bad, nil, false}, "an empty marker is refused": {&empty, nil, false},
	} {
		if _, _, err := pageBy(items, same, plain{}, c.marker, c.most); (err == nil) != c.fine || c.marker != nil && err.Error() != "ValidationError: Invalid Marker." {
			t.Error(name, err)
		}
	}
	first, page, err := pageBy(items, same, plain{}, nil, &one)
	if err != nil || !page.IsTruncated || len(first) != 1 || first[0] != "a" {
		t.Fatal(first, page, err)
	}
	// The item that the first page ended with is deleted, and another comes before it: nothing is lost or told twice.
	rest, page, err := pageBy([]string{"d", "b", "0", "c"}, same, plain{}, page.Marker, nil)
	if diff := cmp.Diff([]string{"b", "c", "d"}, rest); diff != "" || page.IsTruncated || page.Marker != nil || err != nil {
		t.Error(diff, page, err)
	}
}
