// SPDX-License-Identifier: Apache-2.0

package places

import (
	"flag"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every place that is planted must reach the program.
func TestArgsAreRead(t *testing.T) {
	var want Map
	n := 0
	want.fields(func(name, usage string, value any) {
		n++
		if name == "" || usage == "" {
			t.Errorf("field %d has no flag or no usage", n)
		}
		switch v := value.(type) {
		case *string:
			*v = "a value of " + name
		case *int:
			*v = n
		case *int64:
			*v = int64(n) << 32
		case *bool:
			*v = true
		default:
			t.Errorf("%s is a %T: Register and Args do not know that type", name, value)
		}
	})
	if n != reflect.TypeFor[Map]().NumField() {
		t.Errorf("%d flags for %d fields", n, reflect.TypeFor[Map]().NumField())
	}
	for _, want := range []Map{want, {}} {
		var got Map
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		got.Register(flags)
		if err := flags.Parse(want.Args()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestFind(t *testing.T) {
	const token, other = "0123456789abcdef0123456789abcdef", "ffffffffffffffffffffffffffffffff"
	places := Map{TokenHash: hash([]byte(token))}
	for data, want := range map[string]string{
		token:                         token,
		"a " + token + "\x00":         token,
		other + "\n" + token:          token,
		other:                         "",
		token[1:]:                     "",
		"":                            "",
		"MUSTER=" + token + "\x00A=b": token,
	} {
		if got := places.Find([]byte(data)); got != want {
			t.Errorf("found %q in %q, want %q", got, data, want)
		}
	}
	if got := new(Map).Find([]byte(token)); got != "" {
		t.Errorf("found %q without knowing its hash", got)
	}
}
