// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"strings"
)

// DidYouMean suggests the name that is nearest to a mistyped one, if any is near.
func DidYouMean(name string, all []string) string {
	best, least := "", max(2, len(name)/4)+1
	for _, candidate := range all {
		if candidate == "" {
			continue
		}
		distance := editDistance(name, candidate)
		if len(name) > 3 && strings.HasPrefix(candidate, name) {
			distance = min(distance, 1)
		}
		if distance < least && 2*distance < len(name) { // "no" is not near to "foo"
			best, least = candidate, distance
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// editDistance is the number of letters to add, drop or change to make b out of a (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost++
			}
			corner = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
