// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// Once it serves, the program can do nothing that an ordinary user's could not, but read its own files.
func TestRightsAreGivenUp(t *testing.T) {
	w := newWorld(t, nat())
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(w.process.Process.Pid) + "/task")
	if err != nil || len(threads) < 2 {
		t.Fatal(threads, err)
	}
	for _, thread := range threads {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(w.process.Process.Pid) + "/task/" + thread.Name() + "/status")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1"} {
			if !strings.Contains(string(raw), want) {
				t.Errorf("thread %s: no %s", thread.Name(), want)
			}
		}
	}
}
