// SPDX-License-Identifier: Apache-2.0

package termsafe_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/termsafe"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a": "node-1, grüße, 節點"}`:               `{"a": "node-1, grüße, 節點"}`,
		"{\"\u202ea\": \"\u200b\u009b\x7f\"}":      `{"\u202ea": "\u200b\u009b\u007f"}`,
		"[\"\U000E0041\U000E0042\",\n \"\ufeff\"]": "[\"\\udb40\\udc41\\udb40\\udc42\",\n \"\\ufeff\"]",
	} {
		if got := string(termsafe.JSON([]byte(in))); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

// Whatever is said, it says the same afterwards, and nothing of it is hidden.
func FuzzJSON(f *testing.F) {
	f.Add("a\u202eb\U000E0041\x7f")
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := json.Marshal(map[string]string{text: text})
		if err != nil {
			t.Fatal(err)
		}
		got := termsafe.JSON(raw)
		if strings.ContainsFunc(string(got), func(r rune) bool { return !strconv.IsPrint(r) }) {
			t.Errorf("%q", got)
		}
		var before, after map[string]string
		if json.Unmarshal(raw, &before) != nil || json.Unmarshal(got, &after) != nil || len(before) != 1 || len(after) != 1 {
			t.Fatalf("%q became %q", raw, got)
		}
		for key, value := range before {
			if after[key] != value {
				t.Errorf("%q became %q", raw, got)
			}
		}
	})
}
