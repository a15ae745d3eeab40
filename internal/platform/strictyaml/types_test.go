// SPDX-License-Identifier: Apache-2.0

package strictyaml_test

import (
	"encoding/json"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/strictyaml"
)

// itself decodes itself, and counts offsets from its own beginning.
type itself struct{ Port int }

func (i *itself) UnmarshalJSON(data []byte) error {
	var fields struct{ Port int }
	err := json.Unmarshal(data, &fields)
	i.Port = fields.Port
	return err
}

type inner struct {
	Addresses []string `json:"addresses"`
	Count     int      `json:"count"`
	Deep      [][]bool `json:"deep"`
}

// An error of a type names the item of a list and of a map that it is in.
func TestTypeErrorsNameItems(t *testing.T) {
	t.Parallel()
	type document struct {
		Name     string           `json:"name"`
		Machines []inner          `json:"machines"`
		ByName   map[string]inner `json:"byName"`
		Self     []itself         `json:"self"`
		Spec     struct {
			inner `json:",inline"`
		} `json:"spec"`
	}
	for name, test := range map[string]struct{ text, want string }{
		"a text for a list":      {`{machines: [{}, {addresses: [a, "]"]}, {count: 1}, {addresses: b}]}`, "machines[3].addresses: Invalid value: string: must be a list"},
		"a list for a text":      {`{machines: [{addresses: [a, [b]]}]}`, "machines[0].addresses[1]: Invalid value: array: must be text, in quotes if it looks like something else"},
		"an object for a number": {"machines:\n- count: 1\n- count: {machines: 1}\n", "machines[1].count: Invalid value: object: must be a whole number"},
		"a number for an object": {`{machines: [{}, 7]}`, "machines[1]: Invalid value: number: must be an object with fields"},
		"lists of lists":         {`{machines: [{deep: [[], [true, false], [true, 1]]}]}`, "machines[0].deep[2][1]: Invalid value: number: must be true or false"},
		"a map":                  {`{name: x, byName: {a: {count: 1}, "b": {count: machines}}}`, "byName.b.count: Invalid value: string: must be a whole number"},
		"no list around it":      {`{name: [1]}`, "name: Invalid value: array: must be text, in quotes if it looks like something else"},
		"the document":           {`[1]`, "<document>: Invalid value: array: must be an object with fields"},
		"decoded by itself":      {`{name: "a long name before it", self: [{port: 1}, {port: x}]}`, "self"},
	} {
		raw, problems := strictyaml.ToJSON([]byte(test.text))
		if problems != nil {
			t.Fatal(problems)
		}
		var into document
		problems, ok := strictyaml.FromJSON(raw, &into)
		if ok || len(problems) != 1 || problems[0] != test.want && (test.want != "self" || !strings.HasPrefix(problems[0], "self")) {
			t.Errorf("%s: %q", name, problems)
		}
	}
	var list []inner
	if problems, ok := strictyaml.FromJSON([]byte(`[{"count": 1}, {"count": "x"}]`), &list); ok || problems[0] != "[1].count: Invalid value: string: must be a whole number" {
		t.Errorf("a list alone: %q", problems)
	}
}
