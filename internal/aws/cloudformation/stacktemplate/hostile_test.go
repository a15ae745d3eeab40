// SPDX-License-Identifier: Apache-2.0

package stacktemplate_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/cloudformation/stacktemplate"
)

// bombs are templates that take little room and ask for much.
func bombs() map[string]string {
	nest := func(levels int, level func(inner string) string) string {
		text := `"x"`
		for range levels {
			text = level(text)
		}
		return withProperty(text)
	}
	repeat := strings.Repeat("${a}", 100)
	anchors := "x0: &x0 [a, b, c, d, e, f, g, h, i]\n"
	for i := range 20 {
		anchors += fmt.Sprintf("x%d: &x%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*x%d,", i), 9), ","))
	}
	conditions := `"C0": {"Fn::Equals": [{"Ref": "Nothing"}, "b"]}`
	for i := range 300 {
		conditions += fmt.Sprintf(`, "C%d": {"Fn::And": [{"Condition": "C%d"}, {"Condition": "C%d"}]}`, i+1, i, i)
	}
	patterns := ""
	for i := range stacktemplate.MaxParameters {
		patterns += fmt.Sprintf("P%d: {Type: String, AllowedPattern: '(abcdefghijklmnopqrstuvwxyz%d){1000}'}, ", i, i)
	}
	large := strings.Replace(withProperty(`["`+strings.Repeat(`",{"Ref":"Text"},"`, 2000)+`"]`), `"text"`, `"`+strings.Repeat("t", 4000)+`"`, 1)
	return map[string]string{
		"Sub in Sub": nest(40, func(inner string) string { return `{"Fn::Sub": ["` + repeat + `", {"a": ` + inner + `}]}` }),
		"Join of Split": nest(40, func(inner string) string {
			return `{"Fn::Join": ["` + strings.Repeat("x", 60) + `", {"Fn::Split": ["x", ` + inner + `]}]}`
		}),
		"Base64 of Base64":       nest(90, func(inner string) string { return `{"Fn::Base64": ` + inner + `}` }),
		"large parameters":       large,
		"aliases":                anchors + "Resources: {R: {Type: T}}",
		"conditions":             `{"Conditions": {` + conditions + `}, "Resources": {"R": {"Type": "T", "Condition": "C300"}}}`,
		"levels of JSON":         `{"Resources": ` + strings.Repeat(`{"a":`, 8_000) + `1` + strings.Repeat("}", 8_000) + `}`,
		"brackets":               "a: " + strings.Repeat("[", 51_000),
		"levels of YAML":         "Resources: " + strings.Repeat("{a: ", 8_000) + "1" + strings.Repeat("}", 8_000),
		"question marks":         strings.Repeat("? ", 25_000),
		"tags":                   "Resources: [" + strings.TrimSuffix(strings.Repeat("!Sub x,", 7_000), ",") + "]",
		"nulls below a long key": `{"Resources": {"` + strings.Repeat("k", 20_000) + `": [` + strings.TrimSuffix(strings.Repeat("null,", 6_000), ",") + `]}}`,
		"patterns":               "Parameters: {" + patterns + "}\nResources: {R: {Type: T}}",
	}
}

// Whatever a template asks for, reading and evaluating it takes a bounded amount of memory.
func TestMemoryIsBounded(t *testing.T) {
	const most = 256 << 20 // bytes that may be allocated in total, with all that is garbage soon
	for name, body := range bombs() {
		if len(body) > stacktemplate.MaxBody {
			t.Errorf("%s has %d bytes: the limit of the body would refuse it", name, len(body))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		template, err := stacktemplate.Parse([]byte(body))
		if err == nil {
			env := environment()
			if env.Parameters, err = template.Arguments(nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			_ = template.Check(nil)
			if _, err = template.Rehearse(env); err == nil {
				_, err = template.Properties(env, "R")
			}
		}
		runtime.ReadMemStats(&after)
		if problems := problemsOf(t, err); err == nil || len(strings.Join(problems, "")) > 100<<10 {
			t.Errorf("%s: %d problems: %.1000q", name, len(problems), problems)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > most {
			t.Errorf("%s allocates %d MiB, more than %d", name, got>>20, most>>20)
		}
	}
}

// A problem of a value that grows is reported once, with the place.
func TestValueThatGrows(t *testing.T) {
	t.Parallel()
	_, err := evaluate(t, `[{"Fn::Sub": ["`+strings.Repeat("${a}", 500)+`", {"a": {"Fn::Sub": ["`+strings.Repeat("${a}", 500)+`", {"a": "123456"}]}}]}, "b", {"Ref": "Text"}]`)
	expect(t, "growth", err, "Resources.R.Properties.P[0].Fn::Sub: the values become larger than 1048576 bytes")
}
