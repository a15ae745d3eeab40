// SPDX-License-Identifier: Apache-2.0

package cron_test

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"muster.dev/muster/internal/aws/cron"
)

func TestNext(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		expression, after string
		zone              *time.Location
		want              string // empty: never
	}{
		{"* * * * *", "2026-11-29T17:04:31Z", time.UTC, "2026-11-29T17:05:00Z"},
		{"*/15 * * * *", "2026-11-29T17:45:00Z", time.UTC, "2026-11-29T18:00:00Z"},
		{"0 8 * * MON-FRI", "2026-11-28T00:00:00Z", time.UTC, "2026-11-30T08:00:00Z"}, // a Saturday
		{"30 6 1,15 * *", "2026-11-16T00:00:00Z", time.UTC, "2026-12-01T06:30:00Z"},
		{"0 0 13 * 5", "2026-11-29T00:00:00Z", time.UTC, "2026-12-04T00:00:00Z"}, // the 13th, or a Friday
		{"0 0 29 2 *", "2026-11-29T00:00:00Z", time.UTC, "2028-02-29T00:00:00Z"},
		{"0 0 31 2 *", "2026-11-29T00:00:00Z", time.UTC, ""},
		{"0 12 * * 7", "2026-11-29T12:00:00Z", time.UTC, "2026-12-06T12:00:00Z"}, // Sunday
		{"5/20 * * * *", "2026-11-29T17:00:00Z", time.UTC, "2026-11-29T17:05:00Z"},
		{"0 8 * * *", "2026-11-29T00:00:00Z", berlin, "2026-11-29T07:00:00Z"},
		{"0 8 * * *", "2026-07-01T00:00:00Z", berlin, "2026-07-01T06:00:00Z"},
		{"30 2 * * *", "2027-03-27T12:00:00Z", berlin, "2027-03-29T00:30:00Z"}, // 02:30 does not exist on the 28th
	} {
		e, err := cron.Parse(test.expression)
		if err != nil {
			t.Error(err)
			continue
		}
		after, err := time.Parse(time.RFC3339, test.after)
		if err != nil {
			t.Fatal(err)
		}
		next := e.Next(after, test.zone)
		got := ""
		if !next.IsZero() {
			got = next.UTC().Format(time.RFC3339)
		}
		if got != test.want {
			t.Errorf("%s after %s: %s, want %s", test.expression, test.after, got, test.want)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":              "has 0 fields",
		"* * * *":       "has 4 fields",
		"60 * * * *":    "minute \"60\": it must be from 0 to 59",
		"* 24 * * *":    "from 0 to 23",
		"* * 0 * *":     "from 1 to 31",
		"* * * foo *":   "month \"foo\"",
		"* * * * 8":     "from 0 to 7",
		"5-1 * * * *":   "must not end before it begins",
		"*/0 * * * *":   "the step must be a number from 1 to 59",
		"*/x * * * *":   "the step",
		"1, * * * *":    "minute \"1,\"",
		"+1 * * * *":    "minute \"+1\"",
		"@daily":        "has 1 fields",
		"1 2 3 4 5 6":   "has 6 fields",
		"* * * jan-x *": "month",
	} {
		if _, err := cron.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// An expression that is read is due after the moment that is asked about, at a full minute, or never.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"* * * * *", "*/5 1-3,7 * FEB MON", "0 0 31 2 *", "5/7 * 29 2 1"} {
		f.Add(text, int64(1_700_000_000))
	}
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		e, err := cron.Parse(text)
		if err != nil || seconds < 0 || seconds > 1<<33 {
			return
		}
		after := time.Unix(seconds, 0)
		next := e.Next(after, time.UTC)
		if !next.IsZero() && (!next.After(after) || next.Second() != 0 || !e.Next(next.Add(-time.Second), time.UTC).Equal(next)) {
			t.Errorf("%q after %v is due at %v", text, after, next)
		}
	})
}
