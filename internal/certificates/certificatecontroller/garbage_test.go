// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestHeapsGrowWhileThereIsRoom(t *testing.T) {
	for used, want := range map[uint64]int{0: tight, roomy / 10: 900, roomy / 2: 100, roomy * 100 / (100 + tight): tight, roomy: tight, 10 * roomy: tight} {
		if got := growth(used); got < want || got > want+1 {
			t.Errorf("%d bytes may grow by %d%%, want %d%%", used, got, want)
		}
	}
}

func TestGarbageIsPaced(t *testing.T) {
	was := debug.SetGCPercent(77)
	t.Cleanup(func() { debug.SetGCPercent(was) })
	t.Setenv("GOGC", "77")
	paceGarbage()
	runtime.GC()
	if now := debug.SetGCPercent(77); now != 77 {
		t.Errorf("GOGC is %d although the environment sets it", now)
	}
}

// Once is not enough: what is in use changes.
func TestEveryCollectionIsNoticed(t *testing.T) {
	noticed := make(chan bool, 1)
	afterCollection(func() {
		select {
		case noticed <- true:
		default:
		}
	})
	deadline := time.After(time.Minute)
	for n := range 3 {
		for waiting := true; waiting; { // the next one may be a moment early
			runtime.GC()
			select {
			case <-noticed:
				waiting = false
			case <-deadline:
				t.Fatalf("%d collections were noticed", n)
			default:
			}
		}
	}
}
