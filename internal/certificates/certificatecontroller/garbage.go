// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// roomy is how large the heap may grow before garbage is collected, however little of it is used: thousands of live
	// requests take that much anyway.
	roomy = 24 << 20
	// tight is how much a larger heap may grow by, in percent: less memory than with Go's own 100, for some CPU.
	tight = 27
)

// paceGarbage collects garbage rarely while little memory is used, and often enough to keep it little when there is
// more, if GOGC does not say otherwise. A fixed percentage does either of them; docs/benchmarks.md has figures.
func paceGarbage() {
	if _, set := os.LookupEnv("GOGC"); set {
		return
	}
	used := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	afterCollection(func() {
		metrics.Read(used)
		debug.SetGCPercent(growth(used[0].Value.Uint64()))
	})
	runtime.GC() // from which on it goes by itself
}

// growth is by how many percent the heap may grow when this much of it is used.
func growth(used uint64) int {
	fits := 0.0
	if used > 0 {
		fits = 100*roomy/float64(used) - 100
	}
	return max(tight, int(fits))
}

// afterCollection calls a function whenever garbage was collected: each time it leaves something that the next
// collection finds.
func afterCollection(f func()) {
	runtime.AddCleanup(new([16]byte), func(f func()) {
		f()
		afterCollection(f)
	}, f)
}
