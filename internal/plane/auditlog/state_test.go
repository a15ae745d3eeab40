// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"testing"
	"time"
)

// Several logs are whole since the last of them lost a line, or since the first line if none has.
func TestMerge(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Unix(0, 0).Add(time.Duration(minute) * time.Minute) }
	for name, tc := range map[string]struct {
		states []State
		want   State
	}{
		"no log":                    {nil, State{}},
		"no lines":                  {[]State{{}, {}}, State{}},
		"one has lines":             {[]State{{}, {Whole: at(5)}, {}}, State{Whole: at(5)}},
		"nothing is lost":           {[]State{{Whole: at(5)}, {Whole: at(3)}}, State{Whole: at(3)}},
		"one has lost some":         {[]State{{Whole: at(5), Lost: true}, {Whole: at(3)}}, State{Whole: at(5), Lost: true}},
		"the other one":             {[]State{{Whole: at(3)}, {Whole: at(5), Lost: true}}, State{Whole: at(5), Lost: true}},
		"the young one lost none":   {[]State{{Whole: at(3), Lost: true}, {Whole: at(9)}}, State{Whole: at(3), Lost: true}},
		"both have":                 {[]State{{Whole: at(5), Lost: true}, {Whole: at(8), Lost: true}}, State{Whole: at(8), Lost: true}},
		"both have, the first more": {[]State{{Whole: at(8), Lost: true}, {Whole: at(5), Lost: true}}, State{Whole: at(8), Lost: true}},
	} {
		if got := Merge(tc.states...); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
