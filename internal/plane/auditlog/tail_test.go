// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"os"
	"strings"
	"testing"
)

// tailed reads what is new, and reports the numbers of its lines.
func (w *world) tailed(from Position) (to Position, numbers string, lost bool) {
	w.Helper()
	var all []string
	to, lost, err := Tail(w.Context(), w.log, from, func(line []byte) {
		e, _, ok := read(line)
		if !ok {
			w.Errorf("%s", line)
		}
		all = append(all, strings.TrimLeft(e.AuditID, "0"))
	})
	if err != nil {
		w.Fatal(err)
	}
	return to, strings.Join(all, " "), lost
}

// Each line is yielded once, whatever becomes of the files; parts that are gone are told.
func TestTail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := Position{}
	want := func(lines string, gone bool) {
		t.Helper()
		to, got, lost := w.tailed(at)
		if got != lines || lost != gone {
			t.Errorf("%q, lost %v; want %q, %v", got, lost, lines, gone)
		}
		at = to
	}
	want("", false) // there is no log yet
	w.write(podRead(1), podRead(2))
	want("1 2", false)
	want("", false)
	w.write(podRead(3), podRead(4)[:40])
	want("3", false)
	w.write(podRead(4)[40:])
	w.rotate(1)
	w.write(podRead(5))
	want("4 5", false)
	w.write(podRead(6))
	w.rotate(2)
	want("6", false) // the new part is not there yet
	w.write(podRead(7)[:100])
	want("", false)
	w.write(podRead(7)[100:])
	w.rotate(3)
	w.write(podRead(8))
	before := at
	want("7 8", false)
	if _, again, _ := w.tailed(before); again != "7 8" {
		t.Errorf("from the same position: %q", again)
	}
	for n := 1; n <= 3; n++ {
		if err := os.Remove(w.backup(n)); err != nil {
			t.Fatal(err)
		}
	}
	at = before // the part that was read last is gone
	want("8", true)
	want("", false)
	w.rotate(4)
	w.write(podRead(9))
	at = Position{}
	want("8 9", false) // from the beginning
}

// A log that somebody empties or removes, as on a full disk, begins anew; its older parts are not yielded again.
func TestTailOfALogThatIsEmptied(t *testing.T) {
	t.Parallel()
	for name, empty := range map[string]func(path string) error{
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"removed": os.Remove,
	} {
		w := newWorld(t)
		w.write(podRead(1))
		w.rotate(1)
		w.write(podRead(2))
		w.rotate(2)
		w.write(podRead(3))
		at, _, _ := w.tailed(Position{})
		if err := empty(w.log); err != nil {
			t.Fatal(err)
		}
		if to, got, lost := w.tailed(at); got != "" || lost || to != at {
			t.Errorf("%s: %q, lost %v", name, got, lost)
		}
		w.write(podRead(4))
		at, got, lost := w.tailed(at)
		if got != "4" || !lost {
			t.Errorf("%s, and begun anew: %q, lost %v", name, got, lost)
		}
		if _, got, lost := w.tailed(at); got != "" || lost {
			t.Errorf("%s, and read: %q, lost %v", name, got, lost)
		}
	}
}

func TestDeprecated(t *testing.T) {
	t.Parallel()
	const mark = `"annotations":{"k8s.io/deprecated":"true","k8s.io/removed-release":"1.40"},`
	of := func(stage, annotations, body string) string {
		return `{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"` + stage + `","userAgent":"old/1.0","objectRef":{"apiGroup":"g","apiVersion":"v1beta1","resource":"r","subresource":"s"},` + annotations + body +
			`"stageTimestamp":"2026-11-24T12:00:00.000000Z"}`
	}
	want := DeprecatedRequest{Group: "g", Version: "v1beta1", Resource: "r", Subresource: "s", Removed: "1.40", UserAgent: "old/1.0", At: noon}
	whole := of("ResponseComplete", mark, "")
	for line, is := range map[string]bool{
		whole:                                   true,
		of("Panic", mark, ""):                   true,
		whole[:50] + whole:                      true, // a full disk cut the first one off
		of("ResponseStarted", mark, ""):         false,
		of("ResponseComplete", "", ""):          false,
		whole[:len(whole)-3]:                    false,
		"":                                      false,
		strings.Replace(whole, "Event", "X", 1): false,
		of("ResponseComplete", "", `"requestObject":{"metadata":{`+strings.TrimSuffix(mark, ",")+`}},`): false, // somebody wrote that
	} {
		got, ok := Deprecated([]byte(line))
		if ok != is || ok && got != want {
			t.Errorf("%s: %+v, %v", line, got, ok)
		}
	}
}

func FuzzDeprecated(f *testing.F) {
	f.Add([]byte(`{"kind":"Event","annotations":{"k8s.io/deprecated":"true"},"stageTimestamp":"2026-11-24T12:00:00.000000Z"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if r, ok := Deprecated(line); ok && r.At.IsZero() {
			t.Errorf("%q: %+v", line, r)
		}
	})
}
