// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strings"
	"testing"
)

func TestMemory(t *testing.T) {
	const meminfo = "MemTotal:       24652052 kB\nMemFree:        1234 kB\nMemAvailable:   23205828 kB\nHugePages_Total:       0\nActive: x kB\nUnevictable: 1 MB\n"
	for name, tc := range map[string]struct {
		want int64
		says string
	}{
		"MemTotal":        {want: 24652052 << 10},
		"MemAvailable":    {want: 23205828 << 10},
		"Mem":             {says: "has no such line"},
		"HugePages_Total": {says: `has the line "HugePages_Total:       0": want a number of kB`},
		"Unevictable":     {says: `has the line "Unevictable: 1 MB": want a number of kB`},
		"Active":          {says: `has the line "Active: x kB": `},
	} {
		got, err := memory(meminfo, name)
		if got != tc.want || (err == nil) != (tc.says == "") || err != nil && !strings.HasPrefix(err.Error(), tc.says) {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	total, err := Memory()
	if err != nil {
		t.Fatal(err)
	}
	if available, err := MemoryAvailable(); err != nil || available <= 0 || available > total {
		t.Errorf("%d of %d bytes are available, %v", available, total, err)
	}
}
