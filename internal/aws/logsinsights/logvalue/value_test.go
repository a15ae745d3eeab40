// SPDX-License-Identifier: Apache-2.0

package logvalue_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

func TestEqual(t *testing.T) {
	text, number, spelled := logvalue.Text, logvalue.Number, logvalue.Spelled
	for _, c := range []struct {
		a, b logvalue.Value
		want bool
	}{
		{text("a"), text("a"), true},
		{text("a"), text("A"), false},
		{text("200"), number(200), true},
		{text("200.0"), spelled("2e2"), true},
		{text("0x10"), number(16), false},
		{text("Inf"), text("Infinity"), false},
		{text("9007199254740993"), spelled("9007199254740992"), false}, // the same float64
		{text("9007199254740993"), spelled("9007199254740993"), true},
		{text("true"), logvalue.Bool(true), true},
		{text("1"), logvalue.Bool(true), true},
		{text("true"), number(1), false},
		{text(""), text(""), true},
		{logvalue.Null(), logvalue.Null(), false},
		{logvalue.Null(), text(""), false},
	} {
		if got := logvalue.Equal(c.a, c.b); got != c.want || got != logvalue.Equal(c.b, c.a) {
			t.Errorf("%q = %q: %t", c.a, c.b, got)
		}
	}
}

func TestCompare(t *testing.T) {
	if order, ok := logvalue.Compare(logvalue.Text("9"), logvalue.Text("10")); order != -1 || !ok {
		t.Error("numbers are compared as texts")
	}
	if order, ok := logvalue.Compare(logvalue.Text("b"), logvalue.Text("10")); order != 1 || !ok {
		t.Error("texts are not compared by code points")
	}
	if _, ok := logvalue.Compare(logvalue.Null(), logvalue.Text("")); ok {
		t.Error("a missing field compares")
	}
}

// The order is the example of AWS's page of the sort command.
func TestOrder(t *testing.T) {
	want := []string{"!", "#", "*%04", "0#", "5A", "111A", "2345_", "@", "@_", "A", "A9876fghj", "a12345hfh", "0", "01", "1", "2", "3"}
	values := []logvalue.Value{logvalue.Null()}
	for _, text := range want {
		values = append(values, logvalue.Text(text))
	}
	rand.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	slices.SortFunc(values, logvalue.Order)
	got := make([]string, len(values))
	for i, value := range values {
		got[i] = value.String()
	}
	if !slices.Equal(got, append([]string{""}, want...)) {
		t.Errorf("%q", got)
	}
}

// An order that is not total would make results depend on the order of events.
func TestOrderIsTotal(t *testing.T) {
	value := rapid.Map(rapid.StringOfN(rapid.RuneFrom([]rune("019a-.@é")), 0, 6, -1), logvalue.Text)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := value.Draw(t, "a"), value.Draw(t, "b"), value.Draw(t, "c")
		if logvalue.Order(a, b) != -logvalue.Order(b, a) || logvalue.Order(a, b) == 0 && a.String() != b.String() {
			t.Errorf("%q and %q", a, b)
		}
		if logvalue.Order(a, b) <= 0 && logvalue.Order(b, c) <= 0 && logvalue.Order(a, c) > 0 {
			t.Errorf("%q, %q, %q", a, b, c)
		}
	})
}

func TestString(t *testing.T) {
	parsed, ok := logvalue.FromJSON(`{"b":[1.50,true,null,"x"],"a":"\u00e9"}`)
	if !ok || parsed.String() != `{"a":"é","b":[1.50,true,null,"x"]}` || parsed.Child("b").Child("3").String() != "x" || !parsed.Child("b").Child("4").IsNull() {
		t.Errorf("%s", parsed)
	}
	for want, value := range map[string]logvalue.Value{
		"":                        logvalue.Null(),
		"0.1":                     logvalue.Number(0.1),
		"100000000000000000000":   logvalue.Number(1e20),
		"1e20":                    logvalue.Spelled("1e20"),
		"1":                       logvalue.Bool(true),
		"2026-11-29 20:40:11.623": logvalue.Time(1795984811623),
	} {
		if value.String() != want {
			t.Errorf("%s, want %s", value, want)
		}
	}
	if _, ok := logvalue.FromJSON(`{"a":1} {`); ok {
		t.Error("more than one JSON text is read")
	}
	if !logvalue.Text("TRUE").Truth() || logvalue.Text("yes").Truth() || logvalue.Text("0.0").Truth() || logvalue.Null().Truth() {
		t.Error("truth")
	}
	if logvalue.Text(strings.Repeat("9", 500)).Kind() != logvalue.KindText {
		t.Error("kind")
	}
}
