// SPDX-License-Identifier: Apache-2.0

package logshipper

import (
	"fmt"
	"hash/fnv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/internal/plane/logstore/logstoretest"
)

// Each line is there once, whatever dies and refuses, and however the log is rotated.
func TestEachLineOnce(t *testing.T) {
	faults := rapid.SampledFrom([]logstoretest.Fault{
		logstoretest.None, logstoretest.None, logstoretest.None, logstoretest.Refuses, logstoretest.DiesBefore, logstoretest.DiesWithin, logstoretest.DiesAfter,
	})
	more := rapid.SampledFrom([]string{"", "\xff\x00", strings.Repeat("x", 300), strings.Repeat("y", 70<<10)})
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rapid.Bool().Draw(rt, "copied"))
		salt := rapid.Byte().Draw(rt, "salt")
		w.server.Survive(func(row logstoretest.Row) bool {
			sum := fnv.New32()
			_, _ = sum.Write([]byte{salt})
			_, _ = sum.Write([]byte(row["@offset"]))
			return sum.Sum32()%2 == 0
		})
		unread := false // a log that is copied has one older file
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch step := rapid.SampledFrom([]string{"write", "write", "write", "rotate", "turn", "turn", "fault", "restart", "kill", "half"}).Draw(rt, "step"); step {
			case "write":
				for range rapid.IntRange(1, 5).Draw(rt, "lines") {
					w.write(more.Draw(rt, "more"))
				}
			case "half": // of a line, and then the rest
				w.number++
				begins, ends := fmt.Sprintf(`{"n":%d`, w.number), `,"stageTimestamp":"2026-11-30T00:00:00Z"}`
				w.append(begins)
				_ = w.turn()
				w.append(ends + "\n")
				w.written = append(w.written, begins+ends)
			case "rotate":
				if w.source.Copied && unread || !w.known() {
					continue
				}
				w.rotate()
				unread = true
			case "turn":
				w.server.Fail(nil)
				if err := w.turn(); err != nil {
					rt.Fatal(err)
				}
				unread = false
			case "fault":
				w.server.Fail(func(string) logstoretest.Fault { return faults.Draw(rt, "fault") })
				_ = w.turn()
				w.server.Fail(nil)
			case "restart":
				w.restart()
			case "kill":
				w.server.Kill()
			}
		}
		w.write(strings.Repeat("z", leastBeginning)) // a shorter file waits
		w.expect()
		if t.Failed() {
			rt.FailNow()
		}
	})
}

// known reports whether the newest file can be told from others: a rotated file that cannot is not read.
func (w *world) known() bool {
	id, err := identityOf(w.source, w.source.Path)
	return err == nil && id != ""
}
