// SPDX-License-Identifier: Apache-2.0

package capacity

import "testing"

const gib = 1 << 30

func TestBounds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		host, machines Bounds
		of             map[string]Bounds
	}{
		"a kernel's own limits": {
			Bounds{24 * gib, 32768},
			Bounds{21 * gib, 28672},
			map[string]Bounds{
				"": {18 * gib, 14336}, "local": {18 * gib, 14336}, "t3.small": {2 * gib, 14336}, "m5.4xlarge": {18 * gib, 14336}, "m4.xlarge": {18 * gib, 14336},
			},
		},
		"systemd's pid_max": {
			Bounds{64 * gib, 512 << 10},
			Bounds{56 * gib, 448 << 10},
			map[string]Bounds{"": {48 * gib, 224 << 10}, "t3.small": {2 * gib, 16 << 10}, "m5.large": {8 * gib, 64 << 10}, "m5.4xlarge": {48 * gib, 224 << 10}},
		},
		"a small host": {
			Bounds{4 * gib, 32768},
			Bounds{3 * gib, 28672},
			map[string]Bounds{"": {2 * gib, 14336}, "t3.small": {2 * gib, 14336}},
		},
		"a tiny host": {
			Bounds{1 * gib, 8192},
			Bounds{768 * mib, 7168},
			map[string]Bounds{"": {512 * mib, 3584}, "t3.small": {512 * mib, 3584}},
		},
	} {
		if got := test.host.Machines(); got != test.machines {
			t.Errorf("%s: all machines have %+v, want %+v", name, got, test.machines)
		}
		for kind, want := range test.of {
			if got := test.host.Machine(kind); got != want {
				t.Errorf("%s: a machine of type %q has %+v, want %+v", name, kind, got, want)
			}
		}
	}
}

// No machine may have all that machines together have, and all together not what the host has.
func TestBoundsLeaveSomething(t *testing.T) {
	t.Parallel()
	for memory := int64(512 * mib); memory < 1<<45; memory += memory / 3 {
		host := Bounds{memory, memory / memoryOfProcess}
		all := host.Machines()
		for _, kind := range []string{"", "t3.small", "m5.4xlarge"} {
			one := host.Machine(kind)
			if one.Memory <= 0 || one.PIDs <= 0 || one.Memory >= all.Memory || one.PIDs >= all.PIDs || all.Memory >= host.Memory || all.PIDs >= host.PIDs {
				t.Errorf("host %+v, all %+v, one of %q %+v", host, all, kind, one)
			}
		}
	}
}
