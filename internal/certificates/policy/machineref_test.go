// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"muster.dev/muster/internal/certificates/policy"
)

func TestOneComparisonOfMachines(t *testing.T) {
	for _, tc := range []struct {
		a, b     policy.MachineRef
		same, ok bool
	}{
		{"ec2|i-1", "ec2|i-1", true, true},
		{"ec2|i-1", "ec2|i-2", false, true},
		{"ec2|i-1", "static|i-1", true, false}, // the ID of another source may be another machine's
		{"ec2|i-1", "static|i-2", false, false},
		{"i-1", "ec2|i-1", true, true}, // an old record
		{"i-1", "ec2|i-2", false, true},
		{"i-1", "i-1", true, true},
		{"ec2|a|b", "ec2|a|b", true, true}, // an ID may have the sign in it
		{"ec2|a|b", "ec2|a|c", false, true},
		{"", "ec2|i-1", false, false},
		{"ec2|", "ec2|i-1", false, false},
		{"", "", true, false},
		{"ec2|", "ec2|", true, false},
	} {
		for _, pair := range [][2]policy.MachineRef{{tc.a, tc.b}, {tc.b, tc.a}} {
			if same, ok := pair[0].Same(pair[1]); ok != tc.ok || ok && same != tc.same {
				t.Errorf("%q and %q: same %t, ok %t; want %t, %t", pair[0], pair[1], same, ok, tc.same, tc.ok)
			}
		}
	}
	if source, id := policy.RefOf(policy.Know(policy.Machine{ID: "a|b"}, "ec2", now)).Split(); source != "ec2" || id != "a|b" {
		t.Errorf("read back as %q of %q", id, source)
	}
}
