// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"node-1, grüße":           "node-1, grüße",
		"\x1b[2Ja\nb\tc\x7f":      "?[2Ja?b?c?",
		"\u009b31m\u202eba\u2028": "?31m?ba?",
	} {
		if got := printable(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
