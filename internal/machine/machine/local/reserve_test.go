// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"strings"
	"testing"

	"muster.dev/muster/internal/machine/machine"
)

func TestGrowthStop(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	type look struct {
		available int64 // of a disk of 6400 MiB, whose reserve is 320 MiB, and 5 MiB of it each machine's
		taken     map[string]int64
		stop      string
		dirty     int64
	}
	for name, looks := range map[string][]look{
		"room": {
			{400 * mib, map[string]int64{"a": 0}, "", 0},
			{320 * mib, map[string]int64{"a": 80 * mib}, "", 0},
		},
		"one grows": {
			{400 * mib, map[string]int64{"a": 100 * mib, "b": 900 * mib}, "", 0},
			{319 * mib, map[string]int64{"a": 181 * mib, "b": 900 * mib}, "a", 0},
			{310 * mib, map[string]int64{"a": 190 * mib, "b": 900 * mib}, "a", 0}, // it had not ended yet
		},
		"the one that grows most": {
			{400 * mib, map[string]int64{"a": 0, "b": 0, "c": 500 * mib}, "", 0},
			{300 * mib, map[string]int64{"a": 40 * mib, "b": 60 * mib, "c": 400 * mib}, "b", 0},
		},
		"what is in memory": {
			{400 * mib, map[string]int64{"a": 0}, "", 80 * mib},
			{390 * mib, map[string]int64{"a": 10 * mib}, "a", 71 * mib},
		},
		"for another disk": {
			{700 * mib, map[string]int64{"a": 0}, "", 0},
			{640 * mib, map[string]int64{"a": 60 * mib}, "", 9000 * mib},
			{639 * mib, map[string]int64{"a": 70 * mib}, "a", 9000 * mib},
		},
		"nobody grows": {
			{400 * mib, map[string]int64{"a": 10 * mib}, "", 0},
			{100 * mib, map[string]int64{"a": 10 * mib}, "", 0},
			{50 * mib, map[string]int64{"a": 9 * mib}, "", 0},
		},
		"slowly": {
			{320 * mib, map[string]int64{"a": 0, "b": 0}, "", 0},
			{319 * mib, map[string]int64{"a": 3 * mib, "b": 4096}, "", 0},
			{316 * mib, map[string]int64{"a": 5 * mib, "b": 8192}, "", 0},
			{315 * mib, map[string]int64{"a": 6 * mib, "b": 12288}, "a", 0},
		},
		"from the first look on": {
			{100 * mib, map[string]int64{"a": 900 * mib}, "", 0},
			{90 * mib, map[string]int64{"a": 910 * mib}, "a", 0},
		},
		"a new one": {
			{400 * mib, map[string]int64{"a": 0}, "", 0},
			{300 * mib, map[string]int64{"a": 0, "b": 100 * mib}, "", 0},
			{290 * mib, map[string]int64{"a": 0, "b": 110 * mib}, "b", 0},
		},
		"room again": {
			{400 * mib, map[string]int64{"a": 0}, "", 0},
			{316 * mib, map[string]int64{"a": 4 * mib}, "", 0},
			{330 * mib, map[string]int64{"a": 4 * mib}, "", 0},
			{316 * mib, map[string]int64{"a": 8 * mib}, "", 0},
		},
		"of two alike the first": {
			{400 * mib, map[string]int64{"b": 0, "a": 0}, "", 0},
			{300 * mib, map[string]int64{"b": 50 * mib, "a": 50 * mib}, "a", 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var g growth
			for i, one := range looks {
				if got := g.stop(room{total: 6400 * mib, available: one.available, dirty: one.dirty}, one.taken); got != one.stop {
					t.Errorf("look %d stops %q, want %q", i, got, one.stop)
				}
			}
		})
	}
}

func TestRoomCheck(t *testing.T) {
	t.Parallel()
	const total = 6400 << 20 // with a reserve of 320 MiB
	for mib, want := range map[int64]bool{0: false, 320: false, 399: false, 400: true, 6000: true} {
		err := room{total: total, available: mib << 20}.check("/state", "i-1")
		if (err == nil) != want {
			t.Errorf("with %d MiB: %v", mib, err)
		}
		if err != nil && (!errors.Is(err, machine.ErrDiskReserve) || !strings.Contains(err.Error(), "400 MiB") || !strings.Contains(err.Error(), "muster delete machine i-1") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("it says %v", err)
		}
	}
}
