// SPDX-License-Identifier: Apache-2.0

package logquery_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/logquery"
)

func TestRangesThatPeopleWrite(t *testing.T) {
	for _, c := range []struct {
		given      logquery.Range
		start, end time.Time
		refused    string
	}{
		{logquery.Range{Since: time.Hour}, noon.Add(-time.Hour), noon, ""},
		{logquery.Range{Since: time.Hour, Start: "2026-11-30T11:30:00Z"}, noon.Add(-30 * time.Minute), noon, ""},
		{logquery.Range{Start: "2026-11-30T11:30:00Z", End: "2026-11-30T13:45:00+02:00"}, noon.Add(-30 * time.Minute), noon.Add(-15 * time.Minute), ""},
		{logquery.Range{Since: time.Hour, End: "2026-11-30T11:30:00Z"}, time.Time{}, time.Time{}, "--end goes with --start"},
		{logquery.Range{}, time.Time{}, time.Time{}, "invalid --since 0s: must be a time ago such as 10m"},
		{logquery.Range{Start: "noon", End: "never"}, time.Time{}, time.Time{}, `invalid --start "noon": must be of the form`},
		{logquery.Range{Start: "2026-11-30T11:30:00Z", End: "never"}, time.Time{}, time.Time{}, `invalid --end "never"`},
		{logquery.Range{Start: "2026-11-30T12:30:00Z"}, time.Time{}, time.Time{}, "ends at 2026-11-30T12:00:00Z, before it begins at 2026-11-30T12:30:00Z"},
	} {
		start, end, err := c.given.Times(noon, "--")
		switch {
		case c.refused != "":
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%+v: %v, want %q", c.given, err, c.refused)
			}
		case err != nil || !start.Equal(c.start) || !end.Equal(c.end):
			t.Errorf("%+v is from %s to %s, %v", c.given, start, end, err)
		}
	}
}

func TestNoStoreSaysWhatMendsIt(t *testing.T) {
	for _, c := range []struct {
		err  logquery.NoStoreError
		want string
	}{
		{logquery.NoStoreError{Cluster: "blue", Kept: true}, "muster up starts it"},
		{logquery.NoStoreError{Cluster: "blue"}, "build it by `make logs`, and switch log types on by aws eks update-cluster-config --name blue --logging '"},
		{logquery.NoStoreError{Cluster: "$(reboot)"}, `--name "\$(reboot)" --logging '`},
	} {
		if got := c.err.Error(); !strings.Contains(got, c.want) || len(c.err.Commands()) != 2 {
			t.Errorf("%s\nhas no %s", got, c.want)
		}
	}
}
