// SPDX-License-Identifier: Apache-2.0

package stacktemplate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/cloudformation/stacktemplate"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	decode := func(text string) map[string]any {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		var value map[string]any
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	for _, c := range []struct{ before, after, want string }{
		{`{"a": 1, "b": [1, {"c": "d"}]}`, `{"b": [1, {"c": "d"}], "a": 1}`, ""},
		{`{"a": 80, "b": true}`, `{"a": "80", "b": "true"}`, ""},
		{`{"a": 1}`, `{"a": 2}`, "a a: 1 → 2"},
		{`{}`, `{"a": {}}`, "a a: <nil> → map[]"},
		{`{"a": []}`, `{}`, "a a: [] → <nil>"},
		{`{"a": {"b": {"c": 1, "d": 2}}}`, `{"a": {"b": {"c": 1, "d": 3, "e": 4}}}`, "a a.b.d: 2 → 3; a a.b.e: <nil> → 4"},
		{`{"a": [{"Key": "k", "Value": "v"}]}`, `{"a": [{"Key": "k", "Value": "w"}]}`, "a a[0].Value: v → w"},
		{`{"a": [1, 2]}`, `{"a": [1]}`, "a a: [1 2] → [1]"},
		{`{"a": [1]}`, `{"a": "1"}`, "a a: [1] → 1"},
		{`{"a": {"b": 1}}`, `{"a": [1]}`, "a a: map[b:1] → [1]"},
		{`{"b": 1, "a": 1}`, `{"b": 2, "a": 2}`, "a a: 1 → 2; b b: 1 → 2"},
	} {
		var got []string
		for _, change := range stacktemplate.Diff(decode(c.before), decode(c.after)) {
			got = append(got, fmt.Sprintf("%s %s: %v → %v", change.Property, change.Path, change.Before, change.After))
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%s → %s\n got %s\nwant %s", c.before, c.after, text, c.want)
		}
	}
	unknown := map[string]any{"a": stacktemplate.Unknown{}}
	if changes := stacktemplate.Diff(unknown, unknown); len(changes) != 1 {
		t.Errorf("%v: Unknown differs from everything", changes)
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	type resources = map[string]map[string]any
	before := resources{"Same": {"a": "1"}, "Gone": {}, "Changed": {"a": "1", "b": "2"}}
	after := resources{"Same": {"a": "1"}, "New": {}, "Changed": {"a": "3", "b": "2"}}
	var got []string
	for _, change := range stacktemplate.Compare(before, after) {
		got = append(got, fmt.Sprintf("%s %s %d", change.LogicalID, change.Action, len(change.Changes)))
	}
	if text := strings.Join(got, "; "); text != "Changed Modify 1; Gone Remove 0; New Add 0" {
		t.Error(text)
	}
	if changes := stacktemplate.Compare(nil, after); len(changes) != 3 || changes[0].Action != stacktemplate.Add {
		t.Errorf("%+v", changes)
	}
	if changes := stacktemplate.Compare(after, after); changes != nil {
		t.Errorf("%+v", changes)
	}
	if len(before) != 3 {
		t.Error("an argument was changed")
	}
}
