// SPDX-License-Identifier: Apache-2.0

package statedir_test

import (
	"reflect"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/statedir"
)

func TestOwns(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"machines": true, "queues": true, ".new-123": true, "lost+found": false, "Machines": false, "holiday.jpg": false, "": false} {
		if got := statedir.Owns(name); got != want {
			t.Errorf("%q is Muster's: %v, want %v", name, got, want)
		}
	}
}

// `muster up` refuses a directory with names that are not Muster's, and `muster down --delete` leaves them: each path
// is below one that is.
func TestOwnsEachPath(t *testing.T) {
	t.Parallel()
	eachPath(t, reflect.ValueOf(statedir.Dir("/d")))
	eachPath(t, reflect.ValueOf(statedir.Management("/d")))
	eachPath(t, reflect.ValueOf(statedir.LogStore("/d")))
}

func eachPath(t *testing.T, d reflect.Value) {
	t.Helper()
	for i := range d.NumMethod() {
		method, arguments := d.Method(i), []reflect.Value(nil)
		for in := range method.Type().Ins() {
			arguments = append(arguments, reflect.ValueOf("x").Convert(in))
		}
		for _, result := range method.Call(arguments) {
			if result.Kind() != reflect.String {
				continue
			}
			name, _, _ := strings.Cut(strings.TrimPrefix(result.String(), "/d/"), "/")
			if !statedir.Owns(name) {
				t.Errorf("%s is below %q, which is not Muster's", d.Type().Method(i).Name, name)
			}
		}
	}
}
