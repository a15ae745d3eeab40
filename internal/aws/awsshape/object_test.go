// SPDX-License-Identifier: Apache-2.0

package awsshape

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestObject(t *testing.T) {
	table, err := Parse(`service s restjson 1
operation Get - GetOutput GET /
structure GetOutput
 name string
 size integer
 ready boolean
 share double
 raw blob
 at timestamp
 any document
 parts Parts
 tags Tags
 inner Inner
 absent string
structure Inner
 id string
list Parts Inner
map Tags string
`)
	if err != nil {
		t.Fatal(err)
	}
	type inner struct{ ID string }
	type output struct {
		Name   string
		Size   *int
		Ready  bool
		Share  *float64
		Raw    []byte
		At     time.Time
		Any    any
		Parts  []inner
		Tags   map[string]string
		Inner  *inner
		Absent string
	}
	at, size, share := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), 3, 0.5
	shape := table.Operation("Get").Output
	got, err := shape.Object(&output{
		Name: "n", Size: &size, Share: &share, Raw: []byte("r"), At: at, Any: map[string]any{"a": 1}, Parts: []inner{{"1"}, {"2"}}, Tags: map[string]string{"k": "v"}, Inner: &inner{"i"},
	})
	want := Object{
		"name": "n", "size": int64(3), "ready": false, "share": 0.5, "raw": []byte("r"), "at": at, "any": map[string]any{"a": 1},
		"parts": []any{Object{"id": "1"}, Object{"id": "2"}}, "tags": Object{"k": "v"}, "inner": Object{"id": "i"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, - want + got:\n%s", err, diff)
	}
	if again, err := shape.Object(got); err != nil || cmp.Diff(want, again) != "" {
		t.Errorf("an object is another one: %v, %v", again, err)
	}
	for _, nothing := range []any{nil, (*output)(nil), output{}} {
		if got, err := shape.Object(nothing); err != nil || got["name"] != nil {
			t.Errorf("%T is %v, %v", nothing, got, err)
		}
	}
	if got, err := shape.Object(struct{ Title string }{"t"}); err == nil {
		t.Errorf("a struct with a field that is no member is %v", got)
	}
}
