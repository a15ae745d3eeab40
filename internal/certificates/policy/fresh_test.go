// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// A fact that fresh forgot would be believed however old it is. So every field of Facts is looked at, whichever there
// are.
func TestEveryFactAges(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	const limit = 2 * time.Minute
	for _, tc := range []struct {
		age  time.Duration
		want State
	}{{limit, Known}, {limit + time.Nanosecond, Unknown}} {
		var f Facts
		fill(t, &f, now.Add(-tc.age))
		aged := reflect.ValueOf(f.fresh(now, limit))
		for i := range aged.NumField() {
			name, v := aged.Type().Field(i).Name, aged.Field(i)
			if v.Kind() == reflect.Map {
				v = v.MapIndex(reflect.ValueOf("x"))
			}
			if !v.IsValid() {
				t.Errorf("%s: fresh lost the fact", name)
			} else if got := State(v.FieldByName("State").Int()); got != tc.want {
				t.Errorf("%s: state %d of a fact that is %s old with a limit of %s, want %d", name, got, tc.age, limit, tc.want)
			}
		}
	}
}

// fill makes every fact Known, of one moment; a map gets one fact, "x".
func fill(t *testing.T, f *Facts, at time.Time) {
	t.Helper()
	all := reflect.ValueOf(f).Elem()
	known := func(kind reflect.Type) reflect.Value {
		fact := reflect.New(kind).Elem()
		fact.FieldByName("State").SetInt(int64(Known))
		fact.FieldByName("At").Set(reflect.ValueOf(at))
		return fact
	}
	for i := range all.NumField() {
		field, kind := all.Field(i), all.Type().Field(i).Type
		switch {
		case isFact(kind):
			field.Set(known(kind))
		case kind.Kind() == reflect.Map && kind.Key().Kind() == reflect.String && isFact(kind.Elem()):
			field.Set(reflect.MakeMap(kind))
			field.SetMapIndex(reflect.ValueOf("x"), known(kind.Elem()))
		default:
			t.Fatalf("%s is of type %s, neither a Fact nor a map of Facts by name: it has no age", all.Type().Field(i).Name, kind)
		}
	}
}

func isFact(kind reflect.Type) bool {
	return kind.PkgPath() == reflect.TypeFor[Facts]().PkgPath() && strings.HasPrefix(kind.Name(), "Fact[")
}
