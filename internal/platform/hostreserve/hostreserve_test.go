// SPDX-License-Identifier: Apache-2.0

package hostreserve

import "testing"

func TestOf(t *testing.T) {
	t.Parallel()
	for total, want := range map[int64]int64{0: 0, 100 << 30: 5 << 30, 200 << 30: 10 << 30, 4 << 40: 10 << 30} {
		if got := Of(total); got != want {
			t.Errorf("the reserve of %d is %d, want %d", total, got, want)
		}
	}
}
