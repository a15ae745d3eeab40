// SPDX-License-Identifier: Apache-2.0

package subid

import "testing"

func TestParseLine(t *testing.T) {
	for line, want := range map[string]struct {
		first, end uint64
		ok         bool
	}{
		"a:100000:65536\n":         {100000, 165536, true},
		"a:100000:65536":           {100000, 165536, true},
		"1000:0:1":                 {0, 1, true},
		"a:5:0":                    {5, 5, true},
		"a:0x10:010":               {16, 24, true},
		"a:0XfF:09":                {255, 264, true}, // not octal: decimal for Go programs
		" a : +1 :\t2 \r\n":        {1, 3, true},
		"#a:1:2":                   {1, 3, true},
		"a:4294967295:1":           {1<<32 - 1, 1 << 32, true},
		"a:4294967295:2":           {1<<32 - 1, 1 << 32, true},
		"a:1:4294967296":           {1, 1 << 32, true},
		"a:1:18446744073709551615": {1, 1 << 32, true},
		"a:1:18446744073709551616": {},
		"a:4294967296:1":           {},
		"a:1":                      {},
		"a:1:2:":                   {},
		":1:2":                     {},
		" :1:2":                    {},
		"a::2":                     {},
		"a:1:":                     {},
		"a:-1:2":                   {},
		"a:1 0:2":                  {},
		"a:0x:2":                   {},
		"a:1_0:2":                  {},
		"":                         {},
		"\n":                       {},
		"# a comment\n":            {},
	} {
		if first, end, ok := parseLine(line); first != want.first || end != want.end || ok != want.ok {
			t.Errorf("%q: %d, %d, %v; want %v", line, first, end, ok, want)
		}
	}
}
