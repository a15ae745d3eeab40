// SPDX-License-Identifier: Apache-2.0

package volumemount

import (
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/loopdevice"
)

func TestUnused(t *testing.T) {
	all := []loopdevice.Device{
		{Number: 0, Path: "/mine/a", Over: -1},
		{Number: 1, Path: "/dev/loop0", Over: 0},
		{Number: 2, Path: "/mine/b", Over: -1},
		{Number: 3, Path: "/other", Over: -1},
		{Number: 4, Path: "/mine/loop", Over: 3},
		{Number: 5, Path: "x", Over: 2},
		{Number: 6, Path: "y", Over: 2},
	}
	mine := func(d loopdevice.Device) bool { return strings.HasPrefix(d.Path, "/mine") }
	for name, test := range map[string]struct {
		used map[int]bool
		want []int
	}{
		"none is used": {nil, []int{1, 0, 5, 6, 2}},
		"one is":       {map[int]bool{0: true}, []int{5, 6, 2}},
		"all are":      {map[int]bool{0: true, 2: true, 3: true}, nil},
	} {
		var got []int
		for _, d := range unused(all, mine, test.used) {
			got = append(got, d.Number)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
