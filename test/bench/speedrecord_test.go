// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestRecord(t *testing.T) {
	commit, other := strings.Repeat("a", 40), strings.Repeat("b", 40)
	once, err := record(speedHeader, "2026-11-24", commit, []speedRatio{{joinsCPU, 10, 14}, {upWall, 8, 8.2}})
	if err != nil {
		t.Fatal(err)
	}
	both, err := record(once, "2026-11-25", other, []speedRatio{{joinsCPU, 10, 11}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := record(both, "2026-11-24", commit, []speedRatio{{joinsCPU, 10, 13}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ got, want string }{
		"a commit": {once, speedHeader + "2026-11-24\taaaaaaaaaaaa\t144cca22d5e4\tjoins: CPU seconds\t1.40\n" +
			"2026-11-24\taaaaaaaaaaaa\t144cca22d5e4\tup: seconds\t1.02\n"},
		"the next": {both, once + "2026-11-25\tbbbbbbbbbbbb\t144cca22d5e4\tjoins: CPU seconds\t1.10\n"},
		"the first again": {again, speedHeader + "2026-11-25\tbbbbbbbbbbbb\t144cca22d5e4\tjoins: CPU seconds\t1.10\n" +
			"2026-11-24\taaaaaaaaaaaa\t144cca22d5e4\tjoins: CPU seconds\t1.30\n"},
	} {
		if c.got != c.want {
			t.Errorf("%s:\n%swant:\n%s", name, c.got, c.want)
		}
	}
	for name, kept := range map[string]string{"empty": "", "another header": "date\tcommit\n", "a line cut off": speedHeader + "2026-11-24\taaaaaaaaaaaa\n"} {
		if _, err := record(kept, "2026-11-24", commit, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
