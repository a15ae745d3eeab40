// SPDX-License-Identifier: Apache-2.0

package readiness

import "testing"

func TestCounts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		is, wanted int32
		of, ready  string
	}{
		{0, 0, "0 machines", "0 of 0 machines are Ready"},
		{0, 1, "0 of 1 machine", "0 of 1 machine is Ready"},
		{1, 1, "1 machine", "1 of 1 machine is Ready"},
		{1, 2, "1 of 2 machines", "1 of 2 machines are Ready"},
		{2, 2, "2 machines", "2 of 2 machines are Ready"},
		{3, 2, "3 machines, 1 too many", "3 machines are Ready, 1 too many"},
		{1, 0, "1 machine, 1 too many", "1 machine is Ready, 1 too many"},
	} {
		if got := Of(test.is, test.wanted, "machine", "machines"); got != test.of {
			t.Errorf("%d of %d: %q, want %q", test.is, test.wanted, got, test.of)
		}
		if got := ReadyOf(test.is, test.wanted, "machine", "machines"); got != test.ready {
			t.Errorf("%d of %d: %q, want %q", test.is, test.wanted, got, test.ready)
		}
	}
}
