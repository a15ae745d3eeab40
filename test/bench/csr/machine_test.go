// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

func TestWhatTheMachineDid(t *testing.T) {
	before, err := parseStat("cpu  100 0 50 800 10 5 5 0 0 0\ncpu0 1 2 3\n")
	if err != nil {
		t.Fatal(err)
	}
	after, err := parseStat("cpu  140 10 70 810 20 5 5 10 99 99\n")
	if err != nil {
		t.Fatal(err)
	}
	after.ours = 600 * time.Millisecond
	// 100 ticks passed: 20 idle or waiting for a disk, 60 of ours, and 20 of others.
	if got := after.since(before); !near(got, share{0.2, 0.2}) {
		t.Errorf("it is %+v", got)
	}
	if got := after.since(after); got != (share{}) {
		t.Errorf("in no time it is %+v", got)
	}
	for _, text := range []string{"", "cpu  1 2 3", "intr 1 2 3 4 5 6 7 8 9", "cpu a 2 3 4 5 6 7 8"} {
		if _, err := parseStat(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

func near(a, b share) bool {
	const little = 1e-9
	return max(a.idle-b.idle, b.idle-a.idle, a.others-b.others, b.others-a.others) < little
}
